" How texts of this kind are edited.

if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal comments=:// commentstring=//\ %s
setlocal expandtab shiftwidth=2 softtabstop=2
setlocal autoindent smartindent
setlocal formatoptions-=t formatoptions+=croql
setlocal matchpairs=(:),{:},[:]

let b:undo_ftplugin = 'setlocal comments< commentstring< expandtab< shiftwidth< softtabstop< autoindent< smartindent< formatoptions< matchpairs<'

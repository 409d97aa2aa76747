" Tests of a policy: TOML, with the words that say what is expected.

if exists('b:current_syntax')
  finish
endif

runtime! syntax/toml.vim
unlet! b:current_syntax

syntax match dwtestExpectation /\<\%(expect\|by\|says\)\>\ze\s*=/ containedin=ALLBUT,tomlString,tomlComment
syntax match dwtestColumn /\${\h[[:alnum:]_-]*}/ contained containedin=tomlString

highlight default link dwtestExpectation Keyword
highlight default link dwtestColumn Special

let b:current_syntax = 'dwtest'

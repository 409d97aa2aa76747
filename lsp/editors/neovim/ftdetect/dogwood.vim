" Which files are Dogwood's.

autocmd BufNewFile,BufRead *.dw setfiletype dogwood
autocmd BufNewFile,BufRead *.dwschema setfiletype dwschema
" Some versions call these something else already.
autocmd BufNewFile,BufRead *.cedarschema set filetype=cedarschema
autocmd BufNewFile,BufRead *.dwtest.toml set filetype=dwtest

" Event schemas.

if exists('b:current_syntax')
  finish
endif

syntax case match

syntax match dwschemaPunctuation /[][(){},;:.]\|::/
syntax match dwschemaOperator /[=<>]\|\.\.\./
syntax match dwschemaNumber /\<\d\+\s*[smhd]\=\>/
syntax match dwschemaName /\<\h\w*\>/
syntax match dwschemaBuiltin /\<\%(Bool\|Boolean\|Long\|String\|decimal\|Decimal\)\>/
syntax match dwschemaNamespace /\<\h\w*\ze\s*::/
syntax match dwschemaRequest /\%(=\s*\)\@20<=\%(principal\|resource\|context\)\>/
syntax match dwschemaProperty /\.\s*\h\w*/ contains=dwschemaPunctuation
syntax match dwschemaSelector /\<\%(inputs\|outputs\|principalType\|resourceType\)\ze\s*(/
syntax match dwschemaWindow /\<max_window\>\ze\s*=/
syntax match dwschemaEvent /\<event\>\ze\s*</
syntax match dwschemaDecision /\<decision\>\ze\_s*\%(event\>\|\/\/\)/
syntax match dwschemaPin /\<pin\>\ze\s\+\h\w*\s*:/
syntax match dwschemaKind /\%(>\s*::\s*\)\@20<=\h\w*/
syntax match dwschemaBinder /\%(<\s*\)\@20<=\h\w*\ze\s*>/
syntax match dwschemaKey /\<\h\w*\ze\s*:\%(:\)\@!/
syntax keyword dwschemaTodo TODO FIXME XXX contained
syntax match dwschemaComment +//.*$+ contains=dwschemaTodo,@Spell
syntax region dwschemaBlock start=/{/ end=/}/ fold transparent

highlight default link dwschemaPunctuation Delimiter
highlight default link dwschemaOperator Operator
highlight default link dwschemaNumber Number
highlight default link dwschemaName Type
highlight default link dwschemaBuiltin Type
highlight default link dwschemaNamespace Include
highlight default link dwschemaRequest Special
highlight default link dwschemaProperty Identifier
highlight default link dwschemaSelector Function
highlight default link dwschemaWindow Keyword
highlight default link dwschemaEvent Structure
highlight default link dwschemaDecision StorageClass
highlight default link dwschemaPin StorageClass
highlight default link dwschemaKind Type
highlight default link dwschemaBinder Identifier
highlight default link dwschemaKey Identifier
highlight default link dwschemaTodo Todo
highlight default link dwschemaComment Comment

let b:current_syntax = 'dwschema'

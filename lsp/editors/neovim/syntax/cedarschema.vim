" Action schemas.

if exists('b:current_syntax')
  finish
endif

syntax case match

syntax match cedarschemaPunctuation /[][(){},;:]\|::/
syntax match cedarschemaOperator /[=?<>]/
syntax match cedarschemaName /\<\h\w*\>/
syntax match cedarschemaBuiltin /\<\%(Bool\|Boolean\|Long\|String\|decimal\|datetime\|duration\|ipaddr\|Set\)\>/
syntax match cedarschemaNamespaceName /\<\h\w*\ze\s*::/
syntax match cedarschemaDeclare /\<\%(namespace\|entity\|action\|type\)\>/
syntax match cedarschemaWord /\<\%(in\|tags\|enum\|appliesTo\|attributes\)\>/
syntax match cedarschemaKey /\<\h\w*\ze\s*?\=\s*:\%(:\)\@!/
syntax match cedarschemaRequest /\<\%(principal\|resource\|context\)\>\ze\s*:\%(:\)\@!/
syntax match cedarschemaAnnotation /@\s*\h\w*/
syntax match cedarschemaBadEscape /\\./ contained
syntax match cedarschemaEscape /\\\%([nrt0\\"']\|x[0-7]\x\|u{\x[0-9A-Fa-f_]*}\)/ contained
syntax region cedarschemaString start=/"/ skip=/\\./ end=/"/ contains=cedarschemaEscape,cedarschemaBadEscape
syntax keyword cedarschemaTodo TODO FIXME XXX contained
syntax match cedarschemaComment +//.*$+ contains=cedarschemaTodo,@Spell
syntax region cedarschemaBlock start=/{/ end=/}/ fold transparent

highlight default link cedarschemaPunctuation Delimiter
highlight default link cedarschemaOperator Operator
highlight default link cedarschemaName Type
highlight default link cedarschemaBuiltin Type
highlight default link cedarschemaNamespaceName Include
highlight default link cedarschemaDeclare Structure
highlight default link cedarschemaWord Keyword
highlight default link cedarschemaKey Identifier
highlight default link cedarschemaRequest Special
highlight default link cedarschemaAnnotation PreProc
highlight default link cedarschemaString String
highlight default link cedarschemaEscape SpecialChar
highlight default link cedarschemaBadEscape Error
highlight default link cedarschemaTodo Todo
highlight default link cedarschemaComment Comment

let b:current_syntax = 'cedarschema'

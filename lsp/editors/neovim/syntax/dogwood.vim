" Policies. Words are keywords only where the language gives them a meaning: not behind a dot, not before a colon.

if exists('b:current_syntax')
  finish
endif

syntax case match
syntax sync minlines=200

" Of two items that begin at one place, the one defined last wins.

syntax match dogwoodPunctuation /[][(){},;.:@]\|::/
syntax match dogwoodOperator +&&\|||\|[=!<>]=\|[-!<>=+*%?]\|/\|\.\.\.+
syntax match dogwoodNumber /\<\d\+/
syntax match dogwoodDuration /\<\d\+[smhd]\>/
syntax match dogwoodName /\<\h\w*\>/
syntax match dogwoodFunction /\<\h\w*\ze\s*(/
syntax match dogwoodConstructor /\<\%(decimal\|datetime\|duration\|ip\)\ze\s*(/
syntax match dogwoodBoolean /\<\%(true\|false\)\>/
syntax match dogwoodRequest /\<\%(principal\|action\|resource\|context\)\>/
syntax match dogwoodParameter /[?$]\h\w*/

syntax match dogwoodEffect /\<\%(permit\|forbid\)\>/
syntax match dogwoodClause /\<\%(when\|unless\|guardrails\)\>/
syntax match dogwoodWord /\<\%(has\|like\|is\|in\)\>/
syntax match dogwoodConditional /\<\%(if\|then\|else\)\>/
syntax match dogwoodDefine /\<def\>\%(\s\+\%(temporal\|cedar\)\>\)\=/
syntax match dogwoodTemporalKey /\<temporal\>\ze\_s*\%({\|\/\/\)/
syntax match dogwoodAnnotation /@\s*\h\w*/

" Only inside of a temporal block.
syntax match dogwoodTemporalWord /\<\%(formerly\|previous\|since\|within\)\>/ contained
syntax match dogwoodTemporalWord /\<tp\>\ze\s*(/ contained
syntax match dogwoodQuantifier /\<\%(exists\|for\|where\|count\|sum\)\>/ contained
syntax match dogwoodDuration /\%(\<within\s*\)\@20<=\d\+\s*[smhd]\>/ contained
syntax match dogwoodError /\<let\>\|||/ contained
syntax match dogwoodWildcard /\%(:\s*\)\@20<=\*\|\<_\>/ contained

" Paths: namespaces, types, ids, kinds of events, providers.
syntax match dogwoodNamespace /\<\h\w*\ze\s*::/
syntax match dogwoodType /\<\h\w*\ze\s*::\s*"/
syntax match dogwoodType /\%(::\s*\)\@20<=\h\w*\>\%(\s*::\)\@!/
syntax match dogwoodFunction /\%(::\s*\)\@20<=\h\w*\ze\s*(/
syntax match dogwoodKind /\%("\s*::\s*\)\@20<=\h\w*/

" Before a colon, and behind a dot, every word is a name. The dot behind binders is no such dot.
syntax match dogwoodKey /\%([.?$]\s*\)\@20<!\<\h\w*\%(\s*\.\s*\h\w*\)*\ze\s*:\%(:\)\@!/
syntax match dogwoodProperty /\%()\s*\)\@20<!\.\s*\h\w*/ contains=dogwoodPunctuation
syntax match dogwoodMethod /\.\s*\h\w*\ze\s*(/ contains=dogwoodPunctuation
syntax match dogwoodBinderDot /\%()\s*\)\@20<=\./ contained
syntax match dogwoodBinder /\%((\s*\)\@20<=[?$]\=\h\w*\ze\s*:\%(:\)\@!/ contained
syntax match dogwoodType /\%((\s*[?$]\=\h\w*\s*:\s*\)\@80<=\h\w*\>\%(\s*::\)\@!/ contained

syntax match dogwoodBadEscape /\\./ contained
syntax match dogwoodEscape /\\\%([nrt0\\"']\|x[0-7]\x\|u{\x[0-9A-Fa-f_]*}\)/ contained
syntax match dogwoodStarEscape /\\\*/ contained
syntax match dogwoodStar /\*/ contained
syntax region dogwoodString start=/"/ skip=/\\./ end=/"/ contains=dogwoodEscape,dogwoodBadEscape
syntax region dogwoodPattern start=/\%(\<like\s*\)\@20<="/ skip=/\\./ end=/"/ contains=dogwoodEscape,dogwoodBadEscape,dogwoodStar,dogwoodStarEscape
syntax region dogwoodId start=/\%(::\s*\)\@20<="/ skip=/\\./ end=/"/ contains=dogwoodEscape,dogwoodBadEscape

syntax keyword dogwoodTodo TODO FIXME XXX contained
syntax match dogwoodComment +//.*$+ contains=dogwoodTodo,@Spell

syntax cluster dogwoodInTemporal contains=dogwoodPunctuation,dogwoodOperator,dogwoodNumber,dogwoodDuration,dogwoodName,dogwoodFunction,dogwoodConstructor,dogwoodBoolean,dogwoodRequest,dogwoodParameter,dogwoodTemporalWord,dogwoodQuantifier,dogwoodError,dogwoodWildcard,dogwoodNamespace,dogwoodType,dogwoodKind,dogwoodKey,dogwoodProperty,dogwoodMethod,dogwoodBinderDot,dogwoodBinder,dogwoodString,dogwoodId,dogwoodComment,dogwoodBraces

" A rule that is not finished does not take the next one with it.
syntax region dogwoodTemporal matchgroup=dogwoodPunctuation start=/\%(\<temporal\_s*\)\@40<={/ start=/\%(\<def\s\+temporal\s\+\h\w*\s*([^)]*)\_s*\)\@200<={/ end=/}/ end=/^\ze\s*\%(permit\|forbid\)\s*(/ fold contains=@dogwoodInTemporal
syntax region dogwoodBraces matchgroup=dogwoodPunctuation start=/{/ end=/}/ end=/^\ze\s*\%(permit\|forbid\)\s*(/ contained contains=@dogwoodInTemporal

highlight default link dogwoodPunctuation Delimiter
highlight default link dogwoodOperator Operator
highlight default link dogwoodNumber Number
highlight default link dogwoodDuration Number
highlight default link dogwoodName Identifier
highlight default link dogwoodFunction Function
highlight default link dogwoodConstructor Function
highlight default link dogwoodMethod Function
highlight default link dogwoodBoolean Boolean
highlight default link dogwoodRequest Special
highlight default link dogwoodParameter Identifier
highlight default link dogwoodEffect Statement
highlight default link dogwoodClause Statement
highlight default link dogwoodWord Keyword
highlight default link dogwoodConditional Conditional
highlight default link dogwoodDefine Define
highlight default link dogwoodTemporalKey Statement
highlight default link dogwoodAnnotation PreProc
highlight default link dogwoodTemporalWord Keyword
highlight default link dogwoodQuantifier Repeat
highlight default link dogwoodError Error
highlight default link dogwoodWildcard SpecialChar
highlight default link dogwoodNamespace Include
highlight default link dogwoodType Type
highlight default link dogwoodKind StorageClass
highlight default link dogwoodKey Identifier
highlight default link dogwoodProperty Identifier
highlight default link dogwoodBinderDot Delimiter
highlight default link dogwoodBinder Identifier
highlight default link dogwoodString String
highlight default link dogwoodPattern String
highlight default link dogwoodId Constant
highlight default link dogwoodEscape SpecialChar
highlight default link dogwoodStarEscape SpecialChar
highlight default link dogwoodStar SpecialChar
highlight default link dogwoodBadEscape Error
highlight default link dogwoodTodo Todo
highlight default link dogwoodComment Comment

let b:current_syntax = 'dogwood'

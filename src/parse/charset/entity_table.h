/* SPDX-License-Identifier: ISC */
/* Written by tools/gen_entities.py: do not edit. Names, 0-terminated, in byte order; where each one starts; what it means. */
#define ENTITY_N 2125
#define ENTITY_LONGEST 31
static const char NAMES[] =
	"AElig\0AMP\0Aacute\0Abreve\0Acirc\0Acy\0Afr\0Agrave\0Alpha\0Amacr\0And\0Aogon\0Aopf\0ApplyFunction\0Aring\0"
	"Ascr\0Assign\0Atilde\0Auml\0Backslash\0Barv\0Barwed\0Bcy\0Because\0Bernoullis\0Beta\0Bfr\0Bopf\0Breve\0Bscr\0"
	"Bumpeq\0CHcy\0COPY\0Cacute\0Cap\0CapitalDifferentialD\0Cayleys\0Ccaron\0Ccedil\0Ccirc\0Cconint\0Cdot\0Cedilla\0"
	"CenterDot\0Cfr\0Chi\0CircleDot\0CircleMinus\0CirclePlus\0CircleTimes\0ClockwiseContourIntegral\0"
	"CloseCurlyDoubleQuote\0CloseCurlyQuote\0Colon\0Colone\0Congruent\0Conint\0ContourIntegral\0Copf\0Coproduct\0"
	"CounterClockwiseContourIntegral\0Cross\0Cscr\0Cup\0CupCap\0DD\0DDotrahd\0DJcy\0DScy\0DZcy\0Dagger\0Darr\0Dashv\0"
	"Dcaron\0Dcy\0Del\0Delta\0Dfr\0DiacriticalAcute\0DiacriticalDot\0DiacriticalDoubleAcute\0DiacriticalGrave\0"
	"DiacriticalTilde\0Diamond\0DifferentialD\0Dopf\0Dot\0DotDot\0DotEqual\0DoubleContourIntegral\0DoubleDot\0"
	"DoubleDownArrow\0DoubleLeftArrow\0DoubleLeftRightArrow\0DoubleLeftTee\0DoubleLongLeftArrow\0"
	"DoubleLongLeftRightArrow\0DoubleLongRightArrow\0DoubleRightArrow\0DoubleRightTee\0DoubleUpArrow\0"
	"DoubleUpDownArrow\0DoubleVerticalBar\0DownArrow\0DownArrowBar\0DownArrowUpArrow\0DownBreve\0"
	"DownLeftRightVector\0DownLeftTeeVector\0DownLeftVector\0DownLeftVectorBar\0DownRightTeeVector\0DownRightVector\0"
	"DownRightVectorBar\0DownTee\0DownTeeArrow\0Downarrow\0Dscr\0Dstrok\0ENG\0ETH\0Eacute\0Ecaron\0Ecirc\0Ecy\0Edot\0"
	"Efr\0Egrave\0Element\0Emacr\0EmptySmallSquare\0EmptyVerySmallSquare\0Eogon\0Eopf\0Epsilon\0Equal\0EqualTilde\0"
	"Equilibrium\0Escr\0Esim\0Eta\0Euml\0Exists\0ExponentialE\0Fcy\0Ffr\0FilledSmallSquare\0FilledVerySmallSquare\0"
	"Fopf\0ForAll\0Fouriertrf\0Fscr\0GJcy\0GT\0Gamma\0Gammad\0Gbreve\0Gcedil\0Gcirc\0Gcy\0Gdot\0Gfr\0Gg\0Gopf\0"
	"GreaterEqual\0GreaterEqualLess\0GreaterFullEqual\0GreaterGreater\0GreaterLess\0GreaterSlantEqual\0GreaterTilde\0"
	"Gscr\0Gt\0HARDcy\0Hacek\0Hat\0Hcirc\0Hfr\0HilbertSpace\0Hopf\0HorizontalLine\0Hscr\0Hstrok\0HumpDownHump\0"
	"HumpEqual\0IEcy\0IJlig\0IOcy\0Iacute\0Icirc\0Icy\0Idot\0Ifr\0Igrave\0Im\0Imacr\0ImaginaryI\0Implies\0Int\0"
	"Integral\0Intersection\0InvisibleComma\0InvisibleTimes\0Iogon\0Iopf\0Iota\0Iscr\0Itilde\0Iukcy\0Iuml\0Jcirc\0"
	"Jcy\0Jfr\0Jopf\0Jscr\0Jsercy\0Jukcy\0KHcy\0KJcy\0Kappa\0Kcedil\0Kcy\0Kfr\0Kopf\0Kscr\0LJcy\0LT\0Lacute\0Lambda\0"
	"Lang\0Laplacetrf\0Larr\0Lcaron\0Lcedil\0Lcy\0LeftAngleBracket\0LeftArrow\0LeftArrowBar\0LeftArrowRightArrow\0"
	"LeftCeiling\0LeftDoubleBracket\0LeftDownTeeVector\0LeftDownVector\0LeftDownVectorBar\0LeftFloor\0"
	"LeftRightArrow\0LeftRightVector\0LeftTee\0LeftTeeArrow\0LeftTeeVector\0LeftTriangle\0LeftTriangleBar\0"
	"LeftTriangleEqual\0LeftUpDownVector\0LeftUpTeeVector\0LeftUpVector\0LeftUpVectorBar\0LeftVector\0LeftVectorBar\0"
	"Leftarrow\0Leftrightarrow\0LessEqualGreater\0LessFullEqual\0LessGreater\0LessLess\0LessSlantEqual\0LessTilde\0"
	"Lfr\0Ll\0Lleftarrow\0Lmidot\0LongLeftArrow\0LongLeftRightArrow\0LongRightArrow\0Longleftarrow\0"
	"Longleftrightarrow\0Longrightarrow\0Lopf\0LowerLeftArrow\0LowerRightArrow\0Lscr\0Lsh\0Lstrok\0Lt\0Map\0Mcy\0"
	"MediumSpace\0Mellintrf\0Mfr\0MinusPlus\0Mopf\0Mscr\0Mu\0NJcy\0Nacute\0Ncaron\0Ncedil\0Ncy\0NegativeMediumSpace\0"
	"NegativeThickSpace\0NegativeThinSpace\0NegativeVeryThinSpace\0NestedGreaterGreater\0NestedLessLess\0NewLine\0"
	"Nfr\0NoBreak\0NonBreakingSpace\0Nopf\0Not\0NotCongruent\0NotCupCap\0NotDoubleVerticalBar\0NotElement\0NotEqual\0"
	"NotEqualTilde\0NotExists\0NotGreater\0NotGreaterEqual\0NotGreaterFullEqual\0NotGreaterGreater\0NotGreaterLess\0"
	"NotGreaterSlantEqual\0NotGreaterTilde\0NotHumpDownHump\0NotHumpEqual\0NotLeftTriangle\0NotLeftTriangleBar\0"
	"NotLeftTriangleEqual\0NotLess\0NotLessEqual\0NotLessGreater\0NotLessLess\0NotLessSlantEqual\0NotLessTilde\0"
	"NotNestedGreaterGreater\0NotNestedLessLess\0NotPrecedes\0NotPrecedesEqual\0NotPrecedesSlantEqual\0"
	"NotReverseElement\0NotRightTriangle\0NotRightTriangleBar\0NotRightTriangleEqual\0NotSquareSubset\0"
	"NotSquareSubsetEqual\0NotSquareSuperset\0NotSquareSupersetEqual\0NotSubset\0NotSubsetEqual\0NotSucceeds\0"
	"NotSucceedsEqual\0NotSucceedsSlantEqual\0NotSucceedsTilde\0NotSuperset\0NotSupersetEqual\0NotTilde\0"
	"NotTildeEqual\0NotTildeFullEqual\0NotTildeTilde\0NotVerticalBar\0Nscr\0Ntilde\0Nu\0OElig\0Oacute\0Ocirc\0Ocy\0"
	"Odblac\0Ofr\0Ograve\0Omacr\0Omega\0Omicron\0Oopf\0OpenCurlyDoubleQuote\0OpenCurlyQuote\0Or\0Oscr\0Oslash\0"
	"Otilde\0Otimes\0Ouml\0OverBar\0OverBrace\0OverBracket\0OverParenthesis\0PartialD\0Pcy\0Pfr\0Phi\0Pi\0PlusMinus\0"
	"Poincareplane\0Popf\0Pr\0Precedes\0PrecedesEqual\0PrecedesSlantEqual\0PrecedesTilde\0Prime\0Product\0"
	"Proportion\0Proportional\0Pscr\0Psi\0QUOT\0Qfr\0Qopf\0Qscr\0RBarr\0REG\0Racute\0Rang\0Rarr\0Rarrtl\0Rcaron\0"
	"Rcedil\0Rcy\0Re\0ReverseElement\0ReverseEquilibrium\0ReverseUpEquilibrium\0Rfr\0Rho\0RightAngleBracket\0"
	"RightArrow\0RightArrowBar\0RightArrowLeftArrow\0RightCeiling\0RightDoubleBracket\0RightDownTeeVector\0"
	"RightDownVector\0RightDownVectorBar\0RightFloor\0RightTee\0RightTeeArrow\0RightTeeVector\0RightTriangle\0"
	"RightTriangleBar\0RightTriangleEqual\0RightUpDownVector\0RightUpTeeVector\0RightUpVector\0RightUpVectorBar\0"
	"RightVector\0RightVectorBar\0Rightarrow\0Ropf\0RoundImplies\0Rrightarrow\0Rscr\0Rsh\0RuleDelayed\0SHCHcy\0SHcy\0"
	"SOFTcy\0Sacute\0Sc\0Scaron\0Scedil\0Scirc\0Scy\0Sfr\0ShortDownArrow\0ShortLeftArrow\0ShortRightArrow\0"
	"ShortUpArrow\0Sigma\0SmallCircle\0Sopf\0Sqrt\0Square\0SquareIntersection\0SquareSubset\0SquareSubsetEqual\0"
	"SquareSuperset\0SquareSupersetEqual\0SquareUnion\0Sscr\0Star\0Sub\0Subset\0SubsetEqual\0Succeeds\0"
	"SucceedsEqual\0SucceedsSlantEqual\0SucceedsTilde\0SuchThat\0Sum\0Sup\0Superset\0SupersetEqual\0Supset\0THORN\0"
	"TRADE\0TSHcy\0TScy\0Tab\0Tau\0Tcaron\0Tcedil\0Tcy\0Tfr\0Therefore\0Theta\0ThickSpace\0ThinSpace\0Tilde\0"
	"TildeEqual\0TildeFullEqual\0TildeTilde\0Topf\0TripleDot\0Tscr\0Tstrok\0Uacute\0Uarr\0Uarrocir\0Ubrcy\0Ubreve\0"
	"Ucirc\0Ucy\0Udblac\0Ufr\0Ugrave\0Umacr\0UnderBar\0UnderBrace\0UnderBracket\0UnderParenthesis\0Union\0UnionPlus\0"
	"Uogon\0Uopf\0UpArrow\0UpArrowBar\0UpArrowDownArrow\0UpDownArrow\0UpEquilibrium\0UpTee\0UpTeeArrow\0Uparrow\0"
	"Updownarrow\0UpperLeftArrow\0UpperRightArrow\0Upsi\0Upsilon\0Uring\0Uscr\0Utilde\0Uuml\0VDash\0Vbar\0Vcy\0"
	"Vdash\0Vdashl\0Vee\0Verbar\0Vert\0VerticalBar\0VerticalLine\0VerticalSeparator\0VerticalTilde\0VeryThinSpace\0"
	"Vfr\0Vopf\0Vscr\0Vvdash\0Wcirc\0Wedge\0Wfr\0Wopf\0Wscr\0Xfr\0Xi\0Xopf\0Xscr\0YAcy\0YIcy\0YUcy\0Yacute\0Ycirc\0"
	"Ycy\0Yfr\0Yopf\0Yscr\0Yuml\0ZHcy\0Zacute\0Zcaron\0Zcy\0Zdot\0ZeroWidthSpace\0Zeta\0Zfr\0Zopf\0Zscr\0aacute\0"
	"abreve\0ac\0acE\0acd\0acirc\0acute\0acy\0aelig\0af\0afr\0agrave\0alefsym\0aleph\0alpha\0amacr\0amalg\0amp\0and\0"
	"andand\0andd\0andslope\0andv\0ang\0ange\0angle\0angmsd\0angmsdaa\0angmsdab\0angmsdac\0angmsdad\0angmsdae\0"
	"angmsdaf\0angmsdag\0angmsdah\0angrt\0angrtvb\0angrtvbd\0angsph\0angst\0angzarr\0aogon\0aopf\0ap\0apE\0apacir\0"
	"ape\0apid\0apos\0approx\0approxeq\0aring\0ascr\0ast\0asymp\0asympeq\0atilde\0auml\0awconint\0awint\0bNot\0"
	"backcong\0backepsilon\0backprime\0backsim\0backsimeq\0barvee\0barwed\0barwedge\0bbrk\0bbrktbrk\0bcong\0bcy\0"
	"bdquo\0becaus\0because\0bemptyv\0bepsi\0bernou\0beta\0beth\0between\0bfr\0bigcap\0bigcirc\0bigcup\0bigodot\0"
	"bigoplus\0bigotimes\0bigsqcup\0bigstar\0bigtriangledown\0bigtriangleup\0biguplus\0bigvee\0bigwedge\0bkarow\0"
	"blacklozenge\0blacksquare\0blacktriangle\0blacktriangledown\0blacktriangleleft\0blacktriangleright\0blank\0"
	"blk12\0blk14\0blk34\0block\0bne\0bnequiv\0bnot\0bopf\0bot\0bottom\0bowtie\0boxDL\0boxDR\0boxDl\0boxDr\0boxH\0"
	"boxHD\0boxHU\0boxHd\0boxHu\0boxUL\0boxUR\0boxUl\0boxUr\0boxV\0boxVH\0boxVL\0boxVR\0boxVh\0boxVl\0boxVr\0boxbox\0"
	"boxdL\0boxdR\0boxdl\0boxdr\0boxh\0boxhD\0boxhU\0boxhd\0boxhu\0boxminus\0boxplus\0boxtimes\0boxuL\0boxuR\0boxul\0"
	"boxur\0boxv\0boxvH\0boxvL\0boxvR\0boxvh\0boxvl\0boxvr\0bprime\0breve\0brvbar\0bscr\0bsemi\0bsim\0bsime\0bsol\0"
	"bsolb\0bsolhsub\0bull\0bullet\0bump\0bumpE\0bumpe\0bumpeq\0cacute\0cap\0capand\0capbrcup\0capcap\0capcup\0"
	"capdot\0caps\0caret\0caron\0ccaps\0ccaron\0ccedil\0ccirc\0ccups\0ccupssm\0cdot\0cedil\0cemptyv\0cent\0"
	"centerdot\0cfr\0chcy\0check\0checkmark\0chi\0cir\0cirE\0circ\0circeq\0circlearrowleft\0circlearrowright\0"
	"circledR\0circledS\0circledast\0circledcirc\0circleddash\0cire\0cirfnint\0cirmid\0cirscir\0clubs\0clubsuit\0"
	"colon\0colone\0coloneq\0comma\0commat\0comp\0compfn\0complement\0complexes\0cong\0congdot\0conint\0copf\0"
	"coprod\0copy\0copysr\0crarr\0cross\0cscr\0csub\0csube\0csup\0csupe\0ctdot\0cudarrl\0cudarrr\0cuepr\0cuesc\0"
	"cularr\0cularrp\0cup\0cupbrcap\0cupcap\0cupcup\0cupdot\0cupor\0cups\0curarr\0curarrm\0curlyeqprec\0curlyeqsucc\0"
	"curlyvee\0curlywedge\0curren\0curvearrowleft\0curvearrowright\0cuvee\0cuwed\0cwconint\0cwint\0cylcty\0dArr\0"
	"dHar\0dagger\0daleth\0darr\0dash\0dashv\0dbkarow\0dblac\0dcaron\0dcy\0dd\0ddagger\0ddarr\0ddotseq\0deg\0delta\0"
	"demptyv\0dfisht\0dfr\0dharl\0dharr\0diam\0diamond\0diamondsuit\0diams\0die\0digamma\0disin\0div\0divide\0"
	"divideontimes\0divonx\0djcy\0dlcorn\0dlcrop\0dollar\0dopf\0dot\0doteq\0doteqdot\0dotminus\0dotplus\0dotsquare\0"
	"doublebarwedge\0downarrow\0downdownarrows\0downharpoonleft\0downharpoonright\0drbkarow\0drcorn\0drcrop\0dscr\0"
	"dscy\0dsol\0dstrok\0dtdot\0dtri\0dtrif\0duarr\0duhar\0dwangle\0dzcy\0dzigrarr\0eDDot\0eDot\0eacute\0easter\0"
	"ecaron\0ecir\0ecirc\0ecolon\0ecy\0edot\0ee\0efDot\0efr\0eg\0egrave\0egs\0egsdot\0el\0elinters\0ell\0els\0"
	"elsdot\0emacr\0empty\0emptyset\0emptyv\0emsp\0emsp13\0emsp14\0eng\0ensp\0eogon\0eopf\0epar\0eparsl\0eplus\0"
	"epsi\0epsilon\0epsiv\0eqcirc\0eqcolon\0eqsim\0eqslantgtr\0eqslantless\0equals\0equest\0equiv\0equivDD\0"
	"eqvparsl\0erDot\0erarr\0escr\0esdot\0esim\0eta\0eth\0euml\0euro\0excl\0exist\0expectation\0exponentiale\0"
	"fallingdotseq\0fcy\0female\0ffilig\0fflig\0ffllig\0ffr\0filig\0fjlig\0flat\0fllig\0fltns\0fnof\0fopf\0forall\0"
	"fork\0forkv\0fpartint\0frac12\0frac13\0frac14\0frac15\0frac16\0frac18\0frac23\0frac25\0frac34\0frac35\0frac38\0"
	"frac45\0frac56\0frac58\0frac78\0frasl\0frown\0fscr\0gE\0gEl\0gacute\0gamma\0gammad\0gap\0gbreve\0gcirc\0gcy\0"
	"gdot\0ge\0gel\0geq\0geqq\0geqslant\0ges\0gescc\0gesdot\0gesdoto\0gesdotol\0gesl\0gesles\0gfr\0gg\0ggg\0gimel\0"
	"gjcy\0gl\0glE\0gla\0glj\0gnE\0gnap\0gnapprox\0gne\0gneq\0gneqq\0gnsim\0gopf\0grave\0gscr\0gsim\0gsime\0gsiml\0"
	"gt\0gtcc\0gtcir\0gtdot\0gtlPar\0gtquest\0gtrapprox\0gtrarr\0gtrdot\0gtreqless\0gtreqqless\0gtrless\0gtrsim\0"
	"gvertneqq\0gvnE\0hArr\0hairsp\0half\0hamilt\0hardcy\0harr\0harrcir\0harrw\0hbar\0hcirc\0hearts\0heartsuit\0"
	"hellip\0hercon\0hfr\0hksearow\0hkswarow\0hoarr\0homtht\0hookleftarrow\0hookrightarrow\0hopf\0horbar\0hscr\0"
	"hslash\0hstrok\0hybull\0hyphen\0iacute\0ic\0icirc\0icy\0iecy\0iexcl\0iff\0ifr\0igrave\0ii\0iiiint\0iiint\0"
	"iinfin\0iiota\0ijlig\0imacr\0image\0imagline\0imagpart\0imath\0imof\0imped\0in\0incare\0infin\0infintie\0"
	"inodot\0int\0intcal\0integers\0intercal\0intlarhk\0intprod\0iocy\0iogon\0iopf\0iota\0iprod\0iquest\0iscr\0isin\0"
	"isinE\0isindot\0isins\0isinsv\0isinv\0it\0itilde\0iukcy\0iuml\0jcirc\0jcy\0jfr\0jmath\0jopf\0jscr\0jsercy\0"
	"jukcy\0kappa\0kappav\0kcedil\0kcy\0kfr\0kgreen\0khcy\0kjcy\0kopf\0kscr\0lAarr\0lArr\0lAtail\0lBarr\0lE\0lEg\0"
	"lHar\0lacute\0laemptyv\0lagran\0lambda\0lang\0langd\0langle\0lap\0laquo\0larr\0larrb\0larrbfs\0larrfs\0larrhk\0"
	"larrlp\0larrpl\0larrsim\0larrtl\0lat\0latail\0late\0lates\0lbarr\0lbbrk\0lbrace\0lbrack\0lbrke\0lbrksld\0"
	"lbrkslu\0lcaron\0lcedil\0lceil\0lcub\0lcy\0ldca\0ldquo\0ldquor\0ldrdhar\0ldrushar\0ldsh\0le\0leftarrow\0"
	"leftarrowtail\0leftharpoondown\0leftharpoonup\0leftleftarrows\0leftrightarrow\0leftrightarrows\0"
	"leftrightharpoons\0leftrightsquigarrow\0leftthreetimes\0leg\0leq\0leqq\0leqslant\0les\0lescc\0lesdot\0lesdoto\0"
	"lesdotor\0lesg\0lesges\0lessapprox\0lessdot\0lesseqgtr\0lesseqqgtr\0lessgtr\0lesssim\0lfisht\0lfloor\0lfr\0lg\0"
	"lgE\0lhard\0lharu\0lharul\0lhblk\0ljcy\0ll\0llarr\0llcorner\0llhard\0lltri\0lmidot\0lmoust\0lmoustache\0lnE\0"
	"lnap\0lnapprox\0lne\0lneq\0lneqq\0lnsim\0loang\0loarr\0lobrk\0longleftarrow\0longleftrightarrow\0longmapsto\0"
	"longrightarrow\0looparrowleft\0looparrowright\0lopar\0lopf\0loplus\0lotimes\0lowast\0lowbar\0loz\0lozenge\0"
	"lozf\0lpar\0lparlt\0lrarr\0lrcorner\0lrhar\0lrhard\0lrm\0lrtri\0lsaquo\0lscr\0lsh\0lsim\0lsime\0lsimg\0lsqb\0"
	"lsquo\0lsquor\0lstrok\0lt\0ltcc\0ltcir\0ltdot\0lthree\0ltimes\0ltlarr\0ltquest\0ltrPar\0ltri\0ltrie\0ltrif\0"
	"lurdshar\0luruhar\0lvertneqq\0lvnE\0mDDot\0macr\0male\0malt\0maltese\0map\0mapsto\0mapstodown\0mapstoleft\0"
	"mapstoup\0marker\0mcomma\0mcy\0mdash\0measuredangle\0mfr\0mho\0micro\0mid\0midast\0midcir\0middot\0minus\0"
	"minusb\0minusd\0minusdu\0mlcp\0mldr\0mnplus\0models\0mopf\0mp\0mscr\0mstpos\0mu\0multimap\0mumap\0nGg\0nGt\0"
	"nGtv\0nLeftarrow\0nLeftrightarrow\0nLl\0nLt\0nLtv\0nRightarrow\0nVDash\0nVdash\0nabla\0nacute\0nang\0nap\0napE\0"
	"napid\0napos\0napprox\0natur\0natural\0naturals\0nbsp\0nbump\0nbumpe\0ncap\0ncaron\0ncedil\0ncong\0ncongdot\0"
	"ncup\0ncy\0ndash\0ne\0neArr\0nearhk\0nearr\0nearrow\0nedot\0nequiv\0nesear\0nesim\0nexist\0nexists\0nfr\0ngE\0"
	"nge\0ngeq\0ngeqq\0ngeqslant\0nges\0ngsim\0ngt\0ngtr\0nhArr\0nharr\0nhpar\0ni\0nis\0nisd\0niv\0njcy\0nlArr\0nlE\0"
	"nlarr\0nldr\0nle\0nleftarrow\0nleftrightarrow\0nleq\0nleqq\0nleqslant\0nles\0nless\0nlsim\0nlt\0nltri\0nltrie\0"
	"nmid\0nopf\0not\0notin\0notinE\0notindot\0notinva\0notinvb\0notinvc\0notni\0notniva\0notnivb\0notnivc\0npar\0"
	"nparallel\0nparsl\0npart\0npolint\0npr\0nprcue\0npre\0nprec\0npreceq\0nrArr\0nrarr\0nrarrc\0nrarrw\0"
	"nrightarrow\0nrtri\0nrtrie\0nsc\0nsccue\0nsce\0nscr\0nshortmid\0nshortparallel\0nsim\0nsime\0nsimeq\0nsmid\0"
	"nspar\0nsqsube\0nsqsupe\0nsub\0nsubE\0nsube\0nsubset\0nsubseteq\0nsubseteqq\0nsucc\0nsucceq\0nsup\0nsupE\0"
	"nsupe\0nsupset\0nsupseteq\0nsupseteqq\0ntgl\0ntilde\0ntlg\0ntriangleleft\0ntrianglelefteq\0ntriangleright\0"
	"ntrianglerighteq\0nu\0num\0numero\0numsp\0nvDash\0nvHarr\0nvap\0nvdash\0nvge\0nvgt\0nvinfin\0nvlArr\0nvle\0"
	"nvlt\0nvltrie\0nvrArr\0nvrtrie\0nvsim\0nwArr\0nwarhk\0nwarr\0nwarrow\0nwnear\0oS\0oacute\0oast\0ocir\0ocirc\0"
	"ocy\0odash\0odblac\0odiv\0odot\0odsold\0oelig\0ofcir\0ofr\0ogon\0ograve\0ogt\0ohbar\0ohm\0oint\0olarr\0olcir\0"
	"olcross\0oline\0olt\0omacr\0omega\0omicron\0omid\0ominus\0oopf\0opar\0operp\0oplus\0or\0orarr\0ord\0order\0"
	"orderof\0ordf\0ordm\0origof\0oror\0orslope\0orv\0oscr\0oslash\0osol\0otilde\0otimes\0otimesas\0ouml\0ovbar\0"
	"par\0para\0parallel\0parsim\0parsl\0part\0pcy\0percnt\0period\0permil\0perp\0pertenk\0pfr\0phi\0phiv\0phmmat\0"
	"phone\0pi\0pitchfork\0piv\0planck\0planckh\0plankv\0plus\0plusacir\0plusb\0pluscir\0plusdo\0plusdu\0pluse\0"
	"plusmn\0plussim\0plustwo\0pm\0pointint\0popf\0pound\0pr\0prE\0prap\0prcue\0pre\0prec\0precapprox\0preccurlyeq\0"
	"preceq\0precnapprox\0precneqq\0precnsim\0precsim\0prime\0primes\0prnE\0prnap\0prnsim\0prod\0profalar\0profline\0"
	"profsurf\0prop\0propto\0prsim\0prurel\0pscr\0psi\0puncsp\0qfr\0qint\0qopf\0qprime\0qscr\0quaternions\0quatint\0"
	"quest\0questeq\0quot\0rAarr\0rArr\0rAtail\0rBarr\0rHar\0race\0racute\0radic\0raemptyv\0rang\0rangd\0range\0"
	"rangle\0raquo\0rarr\0rarrap\0rarrb\0rarrbfs\0rarrc\0rarrfs\0rarrhk\0rarrlp\0rarrpl\0rarrsim\0rarrtl\0rarrw\0"
	"ratail\0ratio\0rationals\0rbarr\0rbbrk\0rbrace\0rbrack\0rbrke\0rbrksld\0rbrkslu\0rcaron\0rcedil\0rceil\0rcub\0"
	"rcy\0rdca\0rdldhar\0rdquo\0rdquor\0rdsh\0real\0realine\0realpart\0reals\0rect\0reg\0rfisht\0rfloor\0rfr\0rhard\0"
	"rharu\0rharul\0rho\0rhov\0rightarrow\0rightarrowtail\0rightharpoondown\0rightharpoonup\0rightleftarrows\0"
	"rightleftharpoons\0rightrightarrows\0rightsquigarrow\0rightthreetimes\0ring\0risingdotseq\0rlarr\0rlhar\0rlm\0"
	"rmoust\0rmoustache\0rnmid\0roang\0roarr\0robrk\0ropar\0ropf\0roplus\0rotimes\0rpar\0rpargt\0rppolint\0rrarr\0"
	"rsaquo\0rscr\0rsh\0rsqb\0rsquo\0rsquor\0rthree\0rtimes\0rtri\0rtrie\0rtrif\0rtriltri\0ruluhar\0rx\0sacute\0"
	"sbquo\0sc\0scE\0scap\0scaron\0sccue\0sce\0scedil\0scirc\0scnE\0scnap\0scnsim\0scpolint\0scsim\0scy\0sdot\0"
	"sdotb\0sdote\0seArr\0searhk\0searr\0searrow\0sect\0semi\0seswar\0setminus\0setmn\0sext\0sfr\0sfrown\0sharp\0"
	"shchcy\0shcy\0shortmid\0shortparallel\0shy\0sigma\0sigmaf\0sigmav\0sim\0simdot\0sime\0simeq\0simg\0simgE\0siml\0"
	"simlE\0simne\0simplus\0simrarr\0slarr\0smallsetminus\0smashp\0smeparsl\0smid\0smile\0smt\0smte\0smtes\0softcy\0"
	"sol\0solb\0solbar\0sopf\0spades\0spadesuit\0spar\0sqcap\0sqcaps\0sqcup\0sqcups\0sqsub\0sqsube\0sqsubset\0"
	"sqsubseteq\0sqsup\0sqsupe\0sqsupset\0sqsupseteq\0squ\0square\0squarf\0squf\0srarr\0sscr\0ssetmn\0ssmile\0"
	"sstarf\0star\0starf\0straightepsilon\0straightphi\0strns\0sub\0subE\0subdot\0sube\0subedot\0submult\0subnE\0"
	"subne\0subplus\0subrarr\0subset\0subseteq\0subseteqq\0subsetneq\0subsetneqq\0subsim\0subsub\0subsup\0succ\0"
	"succapprox\0succcurlyeq\0succeq\0succnapprox\0succneqq\0succnsim\0succsim\0sum\0sung\0sup\0sup1\0sup2\0sup3\0"
	"supE\0supdot\0supdsub\0supe\0supedot\0suphsol\0suphsub\0suplarr\0supmult\0supnE\0supne\0supplus\0supset\0"
	"supseteq\0supseteqq\0supsetneq\0supsetneqq\0supsim\0supsub\0supsup\0swArr\0swarhk\0swarr\0swarrow\0swnwar\0"
	"szlig\0target\0tau\0tbrk\0tcaron\0tcedil\0tcy\0tdot\0telrec\0tfr\0there4\0therefore\0theta\0thetasym\0thetav\0"
	"thickapprox\0thicksim\0thinsp\0thkap\0thksim\0thorn\0tilde\0times\0timesb\0timesbar\0timesd\0tint\0toea\0top\0"
	"topbot\0topcir\0topf\0topfork\0tosa\0tprime\0trade\0triangle\0triangledown\0triangleleft\0trianglelefteq\0"
	"triangleq\0triangleright\0trianglerighteq\0tridot\0trie\0triminus\0triplus\0trisb\0tritime\0trpezium\0tscr\0"
	"tscy\0tshcy\0tstrok\0twixt\0twoheadleftarrow\0twoheadrightarrow\0uArr\0uHar\0uacute\0uarr\0ubrcy\0ubreve\0"
	"ucirc\0ucy\0udarr\0udblac\0udhar\0ufisht\0ufr\0ugrave\0uharl\0uharr\0uhblk\0ulcorn\0ulcorner\0ulcrop\0ultri\0"
	"umacr\0uml\0uogon\0uopf\0uparrow\0updownarrow\0upharpoonleft\0upharpoonright\0uplus\0upsi\0upsih\0upsilon\0"
	"upuparrows\0urcorn\0urcorner\0urcrop\0uring\0urtri\0uscr\0utdot\0utilde\0utri\0utrif\0uuarr\0uuml\0uwangle\0"
	"vArr\0vBar\0vBarv\0vDash\0vangrt\0varepsilon\0varkappa\0varnothing\0varphi\0varpi\0varpropto\0varr\0varrho\0"
	"varsigma\0varsubsetneq\0varsubsetneqq\0varsupsetneq\0varsupsetneqq\0vartheta\0vartriangleleft\0"
	"vartriangleright\0vcy\0vdash\0vee\0veebar\0veeeq\0vellip\0verbar\0vert\0vfr\0vltri\0vnsub\0vnsup\0vopf\0vprop\0"
	"vrtri\0vscr\0vsubnE\0vsubne\0vsupnE\0vsupne\0vzigzag\0wcirc\0wedbar\0wedge\0wedgeq\0weierp\0wfr\0wopf\0wp\0wr\0"
	"wreath\0wscr\0xcap\0xcirc\0xcup\0xdtri\0xfr\0xhArr\0xharr\0xi\0xlArr\0xlarr\0xmap\0xnis\0xodot\0xopf\0xoplus\0"
	"xotime\0xrArr\0xrarr\0xscr\0xsqcup\0xuplus\0xutri\0xvee\0xwedge\0yacute\0yacy\0ycirc\0ycy\0yen\0yfr\0yicy\0"
	"yopf\0yscr\0yucy\0yuml\0zacute\0zcaron\0zcy\0zdot\0zeetrf\0zeta\0zfr\0zhcy\0zigrarr\0zopf\0zscr\0zwj\0zwnj\0";
static const struct entity_name { uint16_t name; uint8_t len, legacy; uint32_t first, second; } ENTITIES[ENTITY_N] = {
	{0,5,1,198,0}, {6,3,1,38,0}, {10,6,1,193,0}, {17,6,0,258,0}, {24,5,1,194,0}, {30,3,0,1040,0}, {34,3,0,120068,0},
	{38,6,1,192,0}, {45,5,0,913,0}, {51,5,0,256,0}, {57,3,0,10835,0}, {61,5,0,260,0}, {67,4,0,120120,0},
	{72,13,0,8289,0}, {86,5,1,197,0}, {92,4,0,119964,0}, {97,6,0,8788,0}, {104,6,1,195,0}, {111,4,1,196,0},
	{116,9,0,8726,0}, {126,4,0,10983,0}, {131,6,0,8966,0}, {138,3,0,1041,0}, {142,7,0,8757,0}, {150,10,0,8492,0},
	{161,4,0,914,0}, {166,3,0,120069,0}, {170,4,0,120121,0}, {175,5,0,728,0}, {181,4,0,8492,0}, {186,6,0,8782,0},
	{193,4,0,1063,0}, {198,4,1,169,0}, {203,6,0,262,0}, {210,3,0,8914,0}, {214,20,0,8517,0}, {235,7,0,8493,0},
	{243,6,0,268,0}, {250,6,1,199,0}, {257,5,0,264,0}, {263,7,0,8752,0}, {271,4,0,266,0}, {276,7,0,184,0},
	{284,9,0,183,0}, {294,3,0,8493,0}, {298,3,0,935,0}, {302,9,0,8857,0}, {312,11,0,8854,0}, {324,10,0,8853,0},
	{335,11,0,8855,0}, {347,24,0,8754,0}, {372,21,0,8221,0}, {394,15,0,8217,0}, {410,5,0,8759,0}, {416,6,0,10868,0},
	{423,9,0,8801,0}, {433,6,0,8751,0}, {440,15,0,8750,0}, {456,4,0,8450,0}, {461,9,0,8720,0}, {471,31,0,8755,0},
	{503,5,0,10799,0}, {509,4,0,119966,0}, {514,3,0,8915,0}, {518,6,0,8781,0}, {525,2,0,8517,0}, {528,8,0,10513,0},
	{537,4,0,1026,0}, {542,4,0,1029,0}, {547,4,0,1039,0}, {552,6,0,8225,0}, {559,4,0,8609,0}, {564,5,0,10980,0},
	{570,6,0,270,0}, {577,3,0,1044,0}, {581,3,0,8711,0}, {585,5,0,916,0}, {591,3,0,120071,0}, {595,16,0,180,0},
	{612,14,0,729,0}, {627,22,0,733,0}, {650,16,0,96,0}, {667,16,0,732,0}, {684,7,0,8900,0}, {692,13,0,8518,0},
	{706,4,0,120123,0}, {711,3,0,168,0}, {715,6,0,8412,0}, {722,8,0,8784,0}, {731,21,0,8751,0}, {753,9,0,168,0},
	{763,15,0,8659,0}, {779,15,0,8656,0}, {795,20,0,8660,0}, {816,13,0,10980,0}, {830,19,0,10232,0}, {850,24,0,10234,0},
	{875,20,0,10233,0}, {896,16,0,8658,0}, {913,14,0,8872,0}, {928,13,0,8657,0}, {942,17,0,8661,0}, {960,17,0,8741,0},
	{978,9,0,8595,0}, {988,12,0,10515,0}, {1001,16,0,8693,0}, {1018,9,0,785,0}, {1028,19,0,10576,0},
	{1048,17,0,10590,0}, {1066,14,0,8637,0}, {1081,17,0,10582,0}, {1099,18,0,10591,0}, {1118,15,0,8641,0},
	{1134,18,0,10583,0}, {1153,7,0,8868,0}, {1161,12,0,8615,0}, {1174,9,0,8659,0}, {1184,4,0,119967,0},
	{1189,6,0,272,0}, {1196,3,0,330,0}, {1200,3,1,208,0}, {1204,6,1,201,0}, {1211,6,0,282,0}, {1218,5,1,202,0},
	{1224,3,0,1069,0}, {1228,4,0,278,0}, {1233,3,0,120072,0}, {1237,6,1,200,0}, {1244,7,0,8712,0}, {1252,5,0,274,0},
	{1258,16,0,9723,0}, {1275,20,0,9643,0}, {1296,5,0,280,0}, {1302,4,0,120124,0}, {1307,7,0,917,0}, {1315,5,0,10869,0},
	{1321,10,0,8770,0}, {1332,11,0,8652,0}, {1344,4,0,8496,0}, {1349,4,0,10867,0}, {1354,3,0,919,0}, {1358,4,1,203,0},
	{1363,6,0,8707,0}, {1370,12,0,8519,0}, {1383,3,0,1060,0}, {1387,3,0,120073,0}, {1391,17,0,9724,0},
	{1409,21,0,9642,0}, {1431,4,0,120125,0}, {1436,6,0,8704,0}, {1443,10,0,8497,0}, {1454,4,0,8497,0},
	{1459,4,0,1027,0}, {1464,2,1,62,0}, {1467,5,0,915,0}, {1473,6,0,988,0}, {1480,6,0,286,0}, {1487,6,0,290,0},
	{1494,5,0,284,0}, {1500,3,0,1043,0}, {1504,4,0,288,0}, {1509,3,0,120074,0}, {1513,2,0,8921,0}, {1516,4,0,120126,0},
	{1521,12,0,8805,0}, {1534,16,0,8923,0}, {1551,16,0,8807,0}, {1568,14,0,10914,0}, {1583,11,0,8823,0},
	{1595,17,0,10878,0}, {1613,12,0,8819,0}, {1626,4,0,119970,0}, {1631,2,0,8811,0}, {1634,6,0,1066,0},
	{1641,5,0,711,0}, {1647,3,0,94,0}, {1651,5,0,292,0}, {1657,3,0,8460,0}, {1661,12,0,8459,0}, {1674,4,0,8461,0},
	{1679,14,0,9472,0}, {1694,4,0,8459,0}, {1699,6,0,294,0}, {1706,12,0,8782,0}, {1719,9,0,8783,0}, {1729,4,0,1045,0},
	{1734,5,0,306,0}, {1740,4,0,1025,0}, {1745,6,1,205,0}, {1752,5,1,206,0}, {1758,3,0,1048,0}, {1762,4,0,304,0},
	{1767,3,0,8465,0}, {1771,6,1,204,0}, {1778,2,0,8465,0}, {1781,5,0,298,0}, {1787,10,0,8520,0}, {1798,7,0,8658,0},
	{1806,3,0,8748,0}, {1810,8,0,8747,0}, {1819,12,0,8898,0}, {1832,14,0,8291,0}, {1847,14,0,8290,0}, {1862,5,0,302,0},
	{1868,4,0,120128,0}, {1873,4,0,921,0}, {1878,4,0,8464,0}, {1883,6,0,296,0}, {1890,5,0,1030,0}, {1896,4,1,207,0},
	{1901,5,0,308,0}, {1907,3,0,1049,0}, {1911,3,0,120077,0}, {1915,4,0,120129,0}, {1920,4,0,119973,0},
	{1925,6,0,1032,0}, {1932,5,0,1028,0}, {1938,4,0,1061,0}, {1943,4,0,1036,0}, {1948,5,0,922,0}, {1954,6,0,310,0},
	{1961,3,0,1050,0}, {1965,3,0,120078,0}, {1969,4,0,120130,0}, {1974,4,0,119974,0}, {1979,4,0,1033,0},
	{1984,2,1,60,0}, {1987,6,0,313,0}, {1994,6,0,923,0}, {2001,4,0,10218,0}, {2006,10,0,8466,0}, {2017,4,0,8606,0},
	{2022,6,0,317,0}, {2029,6,0,315,0}, {2036,3,0,1051,0}, {2040,16,0,10216,0}, {2057,9,0,8592,0}, {2067,12,0,8676,0},
	{2080,19,0,8646,0}, {2100,11,0,8968,0}, {2112,17,0,10214,0}, {2130,17,0,10593,0}, {2148,14,0,8643,0},
	{2163,17,0,10585,0}, {2181,9,0,8970,0}, {2191,14,0,8596,0}, {2206,15,0,10574,0}, {2222,7,0,8867,0},
	{2230,12,0,8612,0}, {2243,13,0,10586,0}, {2257,12,0,8882,0}, {2270,15,0,10703,0}, {2286,17,0,8884,0},
	{2304,16,0,10577,0}, {2321,15,0,10592,0}, {2337,12,0,8639,0}, {2350,15,0,10584,0}, {2366,10,0,8636,0},
	{2377,13,0,10578,0}, {2391,9,0,8656,0}, {2401,14,0,8660,0}, {2416,16,0,8922,0}, {2433,13,0,8806,0},
	{2447,11,0,8822,0}, {2459,8,0,10913,0}, {2468,14,0,10877,0}, {2483,9,0,8818,0}, {2493,3,0,120079,0},
	{2497,2,0,8920,0}, {2500,10,0,8666,0}, {2511,6,0,319,0}, {2518,13,0,10229,0}, {2532,18,0,10231,0},
	{2551,14,0,10230,0}, {2566,13,0,10232,0}, {2580,18,0,10234,0}, {2599,14,0,10233,0}, {2614,4,0,120131,0},
	{2619,14,0,8601,0}, {2634,15,0,8600,0}, {2650,4,0,8466,0}, {2655,3,0,8624,0}, {2659,6,0,321,0}, {2666,2,0,8810,0},
	{2669,3,0,10501,0}, {2673,3,0,1052,0}, {2677,11,0,8287,0}, {2689,9,0,8499,0}, {2699,3,0,120080,0},
	{2703,9,0,8723,0}, {2713,4,0,120132,0}, {2718,4,0,8499,0}, {2723,2,0,924,0}, {2726,4,0,1034,0}, {2731,6,0,323,0},
	{2738,6,0,327,0}, {2745,6,0,325,0}, {2752,3,0,1053,0}, {2756,19,0,8203,0}, {2776,18,0,8203,0}, {2795,17,0,8203,0},
	{2813,21,0,8203,0}, {2835,20,0,8811,0}, {2856,14,0,8810,0}, {2871,7,0,10,0}, {2879,3,0,120081,0}, {2883,7,0,8288,0},
	{2891,16,0,160,0}, {2908,4,0,8469,0}, {2913,3,0,10988,0}, {2917,12,0,8802,0}, {2930,9,0,8813,0}, {2940,20,0,8742,0},
	{2961,10,0,8713,0}, {2972,8,0,8800,0}, {2981,13,0,8770,824}, {2995,9,0,8708,0}, {3005,10,0,8815,0},
	{3016,15,0,8817,0}, {3032,19,0,8807,824}, {3052,17,0,8811,824}, {3070,14,0,8825,0}, {3085,20,0,10878,824},
	{3106,15,0,8821,0}, {3122,15,0,8782,824}, {3138,12,0,8783,824}, {3151,15,0,8938,0}, {3167,18,0,10703,824},
	{3186,20,0,8940,0}, {3207,7,0,8814,0}, {3215,12,0,8816,0}, {3228,14,0,8824,0}, {3243,11,0,8810,824},
	{3255,17,0,10877,824}, {3273,12,0,8820,0}, {3286,23,0,10914,824}, {3310,17,0,10913,824}, {3328,11,0,8832,0},
	{3340,16,0,10927,824}, {3357,21,0,8928,0}, {3379,17,0,8716,0}, {3397,16,0,8939,0}, {3414,19,0,10704,824},
	{3434,21,0,8941,0}, {3456,15,0,8847,824}, {3472,20,0,8930,0}, {3493,17,0,8848,824}, {3511,22,0,8931,0},
	{3534,9,0,8834,8402}, {3544,14,0,8840,0}, {3559,11,0,8833,0}, {3571,16,0,10928,824}, {3588,21,0,8929,0},
	{3610,16,0,8831,824}, {3627,11,0,8835,8402}, {3639,16,0,8841,0}, {3656,8,0,8769,0}, {3665,13,0,8772,0},
	{3679,17,0,8775,0}, {3697,13,0,8777,0}, {3711,14,0,8740,0}, {3726,4,0,119977,0}, {3731,6,1,209,0}, {3738,2,0,925,0},
	{3741,5,0,338,0}, {3747,6,1,211,0}, {3754,5,1,212,0}, {3760,3,0,1054,0}, {3764,6,0,336,0}, {3771,3,0,120082,0},
	{3775,6,1,210,0}, {3782,5,0,332,0}, {3788,5,0,937,0}, {3794,7,0,927,0}, {3802,4,0,120134,0}, {3807,20,0,8220,0},
	{3828,14,0,8216,0}, {3843,2,0,10836,0}, {3846,4,0,119978,0}, {3851,6,1,216,0}, {3858,6,1,213,0}, {3865,6,0,10807,0},
	{3872,4,1,214,0}, {3877,7,0,8254,0}, {3885,9,0,9182,0}, {3895,11,0,9140,0}, {3907,15,0,9180,0}, {3923,8,0,8706,0},
	{3932,3,0,1055,0}, {3936,3,0,120083,0}, {3940,3,0,934,0}, {3944,2,0,928,0}, {3947,9,0,177,0}, {3957,13,0,8460,0},
	{3971,4,0,8473,0}, {3976,2,0,10939,0}, {3979,8,0,8826,0}, {3988,13,0,10927,0}, {4002,18,0,8828,0},
	{4021,13,0,8830,0}, {4035,5,0,8243,0}, {4041,7,0,8719,0}, {4049,10,0,8759,0}, {4060,12,0,8733,0},
	{4073,4,0,119979,0}, {4078,3,0,936,0}, {4082,4,1,34,0}, {4087,3,0,120084,0}, {4091,4,0,8474,0}, {4096,4,0,119980,0},
	{4101,5,0,10512,0}, {4107,3,1,174,0}, {4111,6,0,340,0}, {4118,4,0,10219,0}, {4123,4,0,8608,0}, {4128,6,0,10518,0},
	{4135,6,0,344,0}, {4142,6,0,342,0}, {4149,3,0,1056,0}, {4153,2,0,8476,0}, {4156,14,0,8715,0}, {4171,18,0,8651,0},
	{4190,20,0,10607,0}, {4211,3,0,8476,0}, {4215,3,0,929,0}, {4219,17,0,10217,0}, {4237,10,0,8594,0},
	{4248,13,0,8677,0}, {4262,19,0,8644,0}, {4282,12,0,8969,0}, {4295,18,0,10215,0}, {4314,18,0,10589,0},
	{4333,15,0,8642,0}, {4349,18,0,10581,0}, {4368,10,0,8971,0}, {4379,8,0,8866,0}, {4388,13,0,8614,0},
	{4402,14,0,10587,0}, {4417,13,0,8883,0}, {4431,16,0,10704,0}, {4448,18,0,8885,0}, {4467,17,0,10575,0},
	{4485,16,0,10588,0}, {4502,13,0,8638,0}, {4516,16,0,10580,0}, {4533,11,0,8640,0}, {4545,14,0,10579,0},
	{4560,10,0,8658,0}, {4571,4,0,8477,0}, {4576,12,0,10608,0}, {4589,11,0,8667,0}, {4601,4,0,8475,0},
	{4606,3,0,8625,0}, {4610,11,0,10740,0}, {4622,6,0,1065,0}, {4629,4,0,1064,0}, {4634,6,0,1068,0}, {4641,6,0,346,0},
	{4648,2,0,10940,0}, {4651,6,0,352,0}, {4658,6,0,350,0}, {4665,5,0,348,0}, {4671,3,0,1057,0}, {4675,3,0,120086,0},
	{4679,14,0,8595,0}, {4694,14,0,8592,0}, {4709,15,0,8594,0}, {4725,12,0,8593,0}, {4738,5,0,931,0},
	{4744,11,0,8728,0}, {4756,4,0,120138,0}, {4761,4,0,8730,0}, {4766,6,0,9633,0}, {4773,18,0,8851,0},
	{4792,12,0,8847,0}, {4805,17,0,8849,0}, {4823,14,0,8848,0}, {4838,19,0,8850,0}, {4858,11,0,8852,0},
	{4870,4,0,119982,0}, {4875,4,0,8902,0}, {4880,3,0,8912,0}, {4884,6,0,8912,0}, {4891,11,0,8838,0}, {4903,8,0,8827,0},
	{4912,13,0,10928,0}, {4926,18,0,8829,0}, {4945,13,0,8831,0}, {4959,8,0,8715,0}, {4968,3,0,8721,0},
	{4972,3,0,8913,0}, {4976,8,0,8835,0}, {4985,13,0,8839,0}, {4999,6,0,8913,0}, {5006,5,1,222,0}, {5012,5,0,8482,0},
	{5018,5,0,1035,0}, {5024,4,0,1062,0}, {5029,3,0,9,0}, {5033,3,0,932,0}, {5037,6,0,356,0}, {5044,6,0,354,0},
	{5051,3,0,1058,0}, {5055,3,0,120087,0}, {5059,9,0,8756,0}, {5069,5,0,920,0}, {5075,10,0,8287,8202},
	{5086,9,0,8201,0}, {5096,5,0,8764,0}, {5102,10,0,8771,0}, {5113,14,0,8773,0}, {5128,10,0,8776,0},
	{5139,4,0,120139,0}, {5144,9,0,8411,0}, {5154,4,0,119983,0}, {5159,6,0,358,0}, {5166,6,1,218,0}, {5173,4,0,8607,0},
	{5178,8,0,10569,0}, {5187,5,0,1038,0}, {5193,6,0,364,0}, {5200,5,1,219,0}, {5206,3,0,1059,0}, {5210,6,0,368,0},
	{5217,3,0,120088,0}, {5221,6,1,217,0}, {5228,5,0,362,0}, {5234,8,0,95,0}, {5243,10,0,9183,0}, {5254,12,0,9141,0},
	{5267,16,0,9181,0}, {5284,5,0,8899,0}, {5290,9,0,8846,0}, {5300,5,0,370,0}, {5306,4,0,120140,0}, {5311,7,0,8593,0},
	{5319,10,0,10514,0}, {5330,16,0,8645,0}, {5347,11,0,8597,0}, {5359,13,0,10606,0}, {5373,5,0,8869,0},
	{5379,10,0,8613,0}, {5390,7,0,8657,0}, {5398,11,0,8661,0}, {5410,14,0,8598,0}, {5425,15,0,8599,0}, {5441,4,0,978,0},
	{5446,7,0,933,0}, {5454,5,0,366,0}, {5460,4,0,119984,0}, {5465,6,0,360,0}, {5472,4,1,220,0}, {5477,5,0,8875,0},
	{5483,4,0,10987,0}, {5488,3,0,1042,0}, {5492,5,0,8873,0}, {5498,6,0,10982,0}, {5505,3,0,8897,0}, {5509,6,0,8214,0},
	{5516,4,0,8214,0}, {5521,11,0,8739,0}, {5533,12,0,124,0}, {5546,17,0,10072,0}, {5564,13,0,8768,0},
	{5578,13,0,8202,0}, {5592,3,0,120089,0}, {5596,4,0,120141,0}, {5601,4,0,119985,0}, {5606,6,0,8874,0},
	{5613,5,0,372,0}, {5619,5,0,8896,0}, {5625,3,0,120090,0}, {5629,4,0,120142,0}, {5634,4,0,119986,0},
	{5639,3,0,120091,0}, {5643,2,0,926,0}, {5646,4,0,120143,0}, {5651,4,0,119987,0}, {5656,4,0,1071,0},
	{5661,4,0,1031,0}, {5666,4,0,1070,0}, {5671,6,1,221,0}, {5678,5,0,374,0}, {5684,3,0,1067,0}, {5688,3,0,120092,0},
	{5692,4,0,120144,0}, {5697,4,0,119988,0}, {5702,4,0,376,0}, {5707,4,0,1046,0}, {5712,6,0,377,0}, {5719,6,0,381,0},
	{5726,3,0,1047,0}, {5730,4,0,379,0}, {5735,14,0,8203,0}, {5750,4,0,918,0}, {5755,3,0,8488,0}, {5759,4,0,8484,0},
	{5764,4,0,119989,0}, {5769,6,1,225,0}, {5776,6,0,259,0}, {5783,2,0,8766,0}, {5786,3,0,8766,819}, {5790,3,0,8767,0},
	{5794,5,1,226,0}, {5800,5,1,180,0}, {5806,3,0,1072,0}, {5810,5,1,230,0}, {5816,2,0,8289,0}, {5819,3,0,120094,0},
	{5823,6,1,224,0}, {5830,7,0,8501,0}, {5838,5,0,8501,0}, {5844,5,0,945,0}, {5850,5,0,257,0}, {5856,5,0,10815,0},
	{5862,3,1,38,0}, {5866,3,0,8743,0}, {5870,6,0,10837,0}, {5877,4,0,10844,0}, {5882,8,0,10840,0}, {5891,4,0,10842,0},
	{5896,3,0,8736,0}, {5900,4,0,10660,0}, {5905,5,0,8736,0}, {5911,6,0,8737,0}, {5918,8,0,10664,0}, {5927,8,0,10665,0},
	{5936,8,0,10666,0}, {5945,8,0,10667,0}, {5954,8,0,10668,0}, {5963,8,0,10669,0}, {5972,8,0,10670,0},
	{5981,8,0,10671,0}, {5990,5,0,8735,0}, {5996,7,0,8894,0}, {6004,8,0,10653,0}, {6013,6,0,8738,0}, {6020,5,0,197,0},
	{6026,7,0,9084,0}, {6034,5,0,261,0}, {6040,4,0,120146,0}, {6045,2,0,8776,0}, {6048,3,0,10864,0}, {6052,6,0,10863,0},
	{6059,3,0,8778,0}, {6063,4,0,8779,0}, {6068,4,0,39,0}, {6073,6,0,8776,0}, {6080,8,0,8778,0}, {6089,5,1,229,0},
	{6095,4,0,119990,0}, {6100,3,0,42,0}, {6104,5,0,8776,0}, {6110,7,0,8781,0}, {6118,6,1,227,0}, {6125,4,1,228,0},
	{6130,8,0,8755,0}, {6139,5,0,10769,0}, {6145,4,0,10989,0}, {6150,8,0,8780,0}, {6159,11,0,1014,0}, {6171,9,0,8245,0},
	{6181,7,0,8765,0}, {6189,9,0,8909,0}, {6199,6,0,8893,0}, {6206,6,0,8965,0}, {6213,8,0,8965,0}, {6222,4,0,9141,0},
	{6227,8,0,9142,0}, {6236,5,0,8780,0}, {6242,3,0,1073,0}, {6246,5,0,8222,0}, {6252,6,0,8757,0}, {6259,7,0,8757,0},
	{6267,7,0,10672,0}, {6275,5,0,1014,0}, {6281,6,0,8492,0}, {6288,4,0,946,0}, {6293,4,0,8502,0}, {6298,7,0,8812,0},
	{6306,3,0,120095,0}, {6310,6,0,8898,0}, {6317,7,0,9711,0}, {6325,6,0,8899,0}, {6332,7,0,10752,0},
	{6340,8,0,10753,0}, {6349,9,0,10754,0}, {6359,8,0,10758,0}, {6368,7,0,9733,0}, {6376,15,0,9661,0},
	{6392,13,0,9651,0}, {6406,8,0,10756,0}, {6415,6,0,8897,0}, {6422,8,0,8896,0}, {6431,6,0,10509,0},
	{6438,12,0,10731,0}, {6451,11,0,9642,0}, {6463,13,0,9652,0}, {6477,17,0,9662,0}, {6495,17,0,9666,0},
	{6513,18,0,9656,0}, {6532,5,0,9251,0}, {6538,5,0,9618,0}, {6544,5,0,9617,0}, {6550,5,0,9619,0}, {6556,5,0,9608,0},
	{6562,3,0,61,8421}, {6566,7,0,8801,8421}, {6574,4,0,8976,0}, {6579,4,0,120147,0}, {6584,3,0,8869,0},
	{6588,6,0,8869,0}, {6595,6,0,8904,0}, {6602,5,0,9559,0}, {6608,5,0,9556,0}, {6614,5,0,9558,0}, {6620,5,0,9555,0},
	{6626,4,0,9552,0}, {6631,5,0,9574,0}, {6637,5,0,9577,0}, {6643,5,0,9572,0}, {6649,5,0,9575,0}, {6655,5,0,9565,0},
	{6661,5,0,9562,0}, {6667,5,0,9564,0}, {6673,5,0,9561,0}, {6679,4,0,9553,0}, {6684,5,0,9580,0}, {6690,5,0,9571,0},
	{6696,5,0,9568,0}, {6702,5,0,9579,0}, {6708,5,0,9570,0}, {6714,5,0,9567,0}, {6720,6,0,10697,0}, {6727,5,0,9557,0},
	{6733,5,0,9554,0}, {6739,5,0,9488,0}, {6745,5,0,9484,0}, {6751,4,0,9472,0}, {6756,5,0,9573,0}, {6762,5,0,9576,0},
	{6768,5,0,9516,0}, {6774,5,0,9524,0}, {6780,8,0,8863,0}, {6789,7,0,8862,0}, {6797,8,0,8864,0}, {6806,5,0,9563,0},
	{6812,5,0,9560,0}, {6818,5,0,9496,0}, {6824,5,0,9492,0}, {6830,4,0,9474,0}, {6835,5,0,9578,0}, {6841,5,0,9569,0},
	{6847,5,0,9566,0}, {6853,5,0,9532,0}, {6859,5,0,9508,0}, {6865,5,0,9500,0}, {6871,6,0,8245,0}, {6878,5,0,728,0},
	{6884,6,1,166,0}, {6891,4,0,119991,0}, {6896,5,0,8271,0}, {6902,4,0,8765,0}, {6907,5,0,8909,0}, {6913,4,0,92,0},
	{6918,5,0,10693,0}, {6924,8,0,10184,0}, {6933,4,0,8226,0}, {6938,6,0,8226,0}, {6945,4,0,8782,0}, {6950,5,0,10926,0},
	{6956,5,0,8783,0}, {6962,6,0,8783,0}, {6969,6,0,263,0}, {6976,3,0,8745,0}, {6980,6,0,10820,0}, {6987,8,0,10825,0},
	{6996,6,0,10827,0}, {7003,6,0,10823,0}, {7010,6,0,10816,0}, {7017,4,0,8745,65024}, {7022,5,0,8257,0},
	{7028,5,0,711,0}, {7034,5,0,10829,0}, {7040,6,0,269,0}, {7047,6,1,231,0}, {7054,5,0,265,0}, {7060,5,0,10828,0},
	{7066,7,0,10832,0}, {7074,4,0,267,0}, {7079,5,1,184,0}, {7085,7,0,10674,0}, {7093,4,1,162,0}, {7098,9,0,183,0},
	{7108,3,0,120096,0}, {7112,4,0,1095,0}, {7117,5,0,10003,0}, {7123,9,0,10003,0}, {7133,3,0,967,0}, {7137,3,0,9675,0},
	{7141,4,0,10691,0}, {7146,4,0,710,0}, {7151,6,0,8791,0}, {7158,15,0,8634,0}, {7174,16,0,8635,0}, {7191,8,0,174,0},
	{7200,8,0,9416,0}, {7209,10,0,8859,0}, {7220,11,0,8858,0}, {7232,11,0,8861,0}, {7244,4,0,8791,0},
	{7249,8,0,10768,0}, {7258,6,0,10991,0}, {7265,7,0,10690,0}, {7273,5,0,9827,0}, {7279,8,0,9827,0}, {7288,5,0,58,0},
	{7294,6,0,8788,0}, {7301,7,0,8788,0}, {7309,5,0,44,0}, {7315,6,0,64,0}, {7322,4,0,8705,0}, {7327,6,0,8728,0},
	{7334,10,0,8705,0}, {7345,9,0,8450,0}, {7355,4,0,8773,0}, {7360,7,0,10861,0}, {7368,6,0,8750,0},
	{7375,4,0,120148,0}, {7380,6,0,8720,0}, {7387,4,1,169,0}, {7392,6,0,8471,0}, {7399,5,0,8629,0}, {7405,5,0,10007,0},
	{7411,4,0,119992,0}, {7416,4,0,10959,0}, {7421,5,0,10961,0}, {7427,4,0,10960,0}, {7432,5,0,10962,0},
	{7438,5,0,8943,0}, {7444,7,0,10552,0}, {7452,7,0,10549,0}, {7460,5,0,8926,0}, {7466,5,0,8927,0}, {7472,6,0,8630,0},
	{7479,7,0,10557,0}, {7487,3,0,8746,0}, {7491,8,0,10824,0}, {7500,6,0,10822,0}, {7507,6,0,10826,0},
	{7514,6,0,8845,0}, {7521,5,0,10821,0}, {7527,4,0,8746,65024}, {7532,6,0,8631,0}, {7539,7,0,10556,0},
	{7547,11,0,8926,0}, {7559,11,0,8927,0}, {7571,8,0,8910,0}, {7580,10,0,8911,0}, {7591,6,1,164,0}, {7598,14,0,8630,0},
	{7613,15,0,8631,0}, {7629,5,0,8910,0}, {7635,5,0,8911,0}, {7641,8,0,8754,0}, {7650,5,0,8753,0}, {7656,6,0,9005,0},
	{7663,4,0,8659,0}, {7668,4,0,10597,0}, {7673,6,0,8224,0}, {7680,6,0,8504,0}, {7687,4,0,8595,0}, {7692,4,0,8208,0},
	{7697,5,0,8867,0}, {7703,7,0,10511,0}, {7711,5,0,733,0}, {7717,6,0,271,0}, {7724,3,0,1076,0}, {7728,2,0,8518,0},
	{7731,7,0,8225,0}, {7739,5,0,8650,0}, {7745,7,0,10871,0}, {7753,3,1,176,0}, {7757,5,0,948,0}, {7763,7,0,10673,0},
	{7771,6,0,10623,0}, {7778,3,0,120097,0}, {7782,5,0,8643,0}, {7788,5,0,8642,0}, {7794,4,0,8900,0}, {7799,7,0,8900,0},
	{7807,11,0,9830,0}, {7819,5,0,9830,0}, {7825,3,0,168,0}, {7829,7,0,989,0}, {7837,5,0,8946,0}, {7843,3,0,247,0},
	{7847,6,1,247,0}, {7854,13,0,8903,0}, {7868,6,0,8903,0}, {7875,4,0,1106,0}, {7880,6,0,8990,0}, {7887,6,0,8973,0},
	{7894,6,0,36,0}, {7901,4,0,120149,0}, {7906,3,0,729,0}, {7910,5,0,8784,0}, {7916,8,0,8785,0}, {7925,8,0,8760,0},
	{7934,7,0,8724,0}, {7942,9,0,8865,0}, {7952,14,0,8966,0}, {7967,9,0,8595,0}, {7977,14,0,8650,0}, {7992,15,0,8643,0},
	{8008,16,0,8642,0}, {8025,8,0,10512,0}, {8034,6,0,8991,0}, {8041,6,0,8972,0}, {8048,4,0,119993,0},
	{8053,4,0,1109,0}, {8058,4,0,10742,0}, {8063,6,0,273,0}, {8070,5,0,8945,0}, {8076,4,0,9663,0}, {8081,5,0,9662,0},
	{8087,5,0,8693,0}, {8093,5,0,10607,0}, {8099,7,0,10662,0}, {8107,4,0,1119,0}, {8112,8,0,10239,0},
	{8121,5,0,10871,0}, {8127,4,0,8785,0}, {8132,6,1,233,0}, {8139,6,0,10862,0}, {8146,6,0,283,0}, {8153,4,0,8790,0},
	{8158,5,1,234,0}, {8164,6,0,8789,0}, {8171,3,0,1101,0}, {8175,4,0,279,0}, {8180,2,0,8519,0}, {8183,5,0,8786,0},
	{8189,3,0,120098,0}, {8193,2,0,10906,0}, {8196,6,1,232,0}, {8203,3,0,10902,0}, {8207,6,0,10904,0},
	{8214,2,0,10905,0}, {8217,8,0,9191,0}, {8226,3,0,8467,0}, {8230,3,0,10901,0}, {8234,6,0,10903,0}, {8241,5,0,275,0},
	{8247,5,0,8709,0}, {8253,8,0,8709,0}, {8262,6,0,8709,0}, {8269,4,0,8195,0}, {8274,6,0,8196,0}, {8281,6,0,8197,0},
	{8288,3,0,331,0}, {8292,4,0,8194,0}, {8297,5,0,281,0}, {8303,4,0,120150,0}, {8308,4,0,8917,0}, {8313,6,0,10723,0},
	{8320,5,0,10865,0}, {8326,4,0,949,0}, {8331,7,0,949,0}, {8339,5,0,1013,0}, {8345,6,0,8790,0}, {8352,7,0,8789,0},
	{8360,5,0,8770,0}, {8366,10,0,10902,0}, {8377,11,0,10901,0}, {8389,6,0,61,0}, {8396,6,0,8799,0}, {8403,5,0,8801,0},
	{8409,7,0,10872,0}, {8417,8,0,10725,0}, {8426,5,0,8787,0}, {8432,5,0,10609,0}, {8438,4,0,8495,0}, {8443,5,0,8784,0},
	{8449,4,0,8770,0}, {8454,3,0,951,0}, {8458,3,1,240,0}, {8462,4,1,235,0}, {8467,4,0,8364,0}, {8472,4,0,33,0},
	{8477,5,0,8707,0}, {8483,11,0,8496,0}, {8495,12,0,8519,0}, {8508,13,0,8786,0}, {8522,3,0,1092,0}, {8526,6,0,9792,0},
	{8533,6,0,64259,0}, {8540,5,0,64256,0}, {8546,6,0,64260,0}, {8553,3,0,120099,0}, {8557,5,0,64257,0},
	{8563,5,0,102,106}, {8569,4,0,9837,0}, {8574,5,0,64258,0}, {8580,5,0,9649,0}, {8586,4,0,402,0}, {8591,4,0,120151,0},
	{8596,6,0,8704,0}, {8603,4,0,8916,0}, {8608,5,0,10969,0}, {8614,8,0,10765,0}, {8623,6,1,189,0}, {8630,6,0,8531,0},
	{8637,6,1,188,0}, {8644,6,0,8533,0}, {8651,6,0,8537,0}, {8658,6,0,8539,0}, {8665,6,0,8532,0}, {8672,6,0,8534,0},
	{8679,6,1,190,0}, {8686,6,0,8535,0}, {8693,6,0,8540,0}, {8700,6,0,8536,0}, {8707,6,0,8538,0}, {8714,6,0,8541,0},
	{8721,6,0,8542,0}, {8728,5,0,8260,0}, {8734,5,0,8994,0}, {8740,4,0,119995,0}, {8745,2,0,8807,0}, {8748,3,0,10892,0},
	{8752,6,0,501,0}, {8759,5,0,947,0}, {8765,6,0,989,0}, {8772,3,0,10886,0}, {8776,6,0,287,0}, {8783,5,0,285,0},
	{8789,3,0,1075,0}, {8793,4,0,289,0}, {8798,2,0,8805,0}, {8801,3,0,8923,0}, {8805,3,0,8805,0}, {8809,4,0,8807,0},
	{8814,8,0,10878,0}, {8823,3,0,10878,0}, {8827,5,0,10921,0}, {8833,6,0,10880,0}, {8840,7,0,10882,0},
	{8848,8,0,10884,0}, {8857,4,0,8923,65024}, {8862,6,0,10900,0}, {8869,3,0,120100,0}, {8873,2,0,8811,0},
	{8876,3,0,8921,0}, {8880,5,0,8503,0}, {8886,4,0,1107,0}, {8891,2,0,8823,0}, {8894,3,0,10898,0}, {8898,3,0,10917,0},
	{8902,3,0,10916,0}, {8906,3,0,8809,0}, {8910,4,0,10890,0}, {8915,8,0,10890,0}, {8924,3,0,10888,0},
	{8928,4,0,10888,0}, {8933,5,0,8809,0}, {8939,5,0,8935,0}, {8945,4,0,120152,0}, {8950,5,0,96,0}, {8956,4,0,8458,0},
	{8961,4,0,8819,0}, {8966,5,0,10894,0}, {8972,5,0,10896,0}, {8978,2,1,62,0}, {8981,4,0,10919,0}, {8986,5,0,10874,0},
	{8992,5,0,8919,0}, {8998,6,0,10645,0}, {9005,7,0,10876,0}, {9013,9,0,10886,0}, {9023,6,0,10616,0},
	{9030,6,0,8919,0}, {9037,9,0,8923,0}, {9047,10,0,10892,0}, {9058,7,0,8823,0}, {9066,6,0,8819,0},
	{9073,9,0,8809,65024}, {9083,4,0,8809,65024}, {9088,4,0,8660,0}, {9093,6,0,8202,0}, {9100,4,0,189,0},
	{9105,6,0,8459,0}, {9112,6,0,1098,0}, {9119,4,0,8596,0}, {9124,7,0,10568,0}, {9132,5,0,8621,0}, {9138,4,0,8463,0},
	{9143,5,0,293,0}, {9149,6,0,9829,0}, {9156,9,0,9829,0}, {9166,6,0,8230,0}, {9173,6,0,8889,0}, {9180,3,0,120101,0},
	{9184,8,0,10533,0}, {9193,8,0,10534,0}, {9202,5,0,8703,0}, {9208,6,0,8763,0}, {9215,13,0,8617,0},
	{9229,14,0,8618,0}, {9244,4,0,120153,0}, {9249,6,0,8213,0}, {9256,4,0,119997,0}, {9261,6,0,8463,0},
	{9268,6,0,295,0}, {9275,6,0,8259,0}, {9282,6,0,8208,0}, {9289,6,1,237,0}, {9296,2,0,8291,0}, {9299,5,1,238,0},
	{9305,3,0,1080,0}, {9309,4,0,1077,0}, {9314,5,1,161,0}, {9320,3,0,8660,0}, {9324,3,0,120102,0}, {9328,6,1,236,0},
	{9335,2,0,8520,0}, {9338,6,0,10764,0}, {9345,5,0,8749,0}, {9351,6,0,10716,0}, {9358,5,0,8489,0}, {9364,5,0,307,0},
	{9370,5,0,299,0}, {9376,5,0,8465,0}, {9382,8,0,8464,0}, {9391,8,0,8465,0}, {9400,5,0,305,0}, {9406,4,0,8887,0},
	{9411,5,0,437,0}, {9417,2,0,8712,0}, {9420,6,0,8453,0}, {9427,5,0,8734,0}, {9433,8,0,10717,0}, {9442,6,0,305,0},
	{9449,3,0,8747,0}, {9453,6,0,8890,0}, {9460,8,0,8484,0}, {9469,8,0,8890,0}, {9478,8,0,10775,0}, {9487,7,0,10812,0},
	{9495,4,0,1105,0}, {9500,5,0,303,0}, {9506,4,0,120154,0}, {9511,4,0,953,0}, {9516,5,0,10812,0}, {9522,6,1,191,0},
	{9529,4,0,119998,0}, {9534,4,0,8712,0}, {9539,5,0,8953,0}, {9545,7,0,8949,0}, {9553,5,0,8948,0}, {9559,6,0,8947,0},
	{9566,5,0,8712,0}, {9572,2,0,8290,0}, {9575,6,0,297,0}, {9582,5,0,1110,0}, {9588,4,1,239,0}, {9593,5,0,309,0},
	{9599,3,0,1081,0}, {9603,3,0,120103,0}, {9607,5,0,567,0}, {9613,4,0,120155,0}, {9618,4,0,119999,0},
	{9623,6,0,1112,0}, {9630,5,0,1108,0}, {9636,5,0,954,0}, {9642,6,0,1008,0}, {9649,6,0,311,0}, {9656,3,0,1082,0},
	{9660,3,0,120104,0}, {9664,6,0,312,0}, {9671,4,0,1093,0}, {9676,4,0,1116,0}, {9681,4,0,120156,0},
	{9686,4,0,120000,0}, {9691,5,0,8666,0}, {9697,4,0,8656,0}, {9702,6,0,10523,0}, {9709,5,0,10510,0},
	{9715,2,0,8806,0}, {9718,3,0,10891,0}, {9722,4,0,10594,0}, {9727,6,0,314,0}, {9734,8,0,10676,0}, {9743,6,0,8466,0},
	{9750,6,0,955,0}, {9757,4,0,10216,0}, {9762,5,0,10641,0}, {9768,6,0,10216,0}, {9775,3,0,10885,0}, {9779,5,1,171,0},
	{9785,4,0,8592,0}, {9790,5,0,8676,0}, {9796,7,0,10527,0}, {9804,6,0,10525,0}, {9811,6,0,8617,0}, {9818,6,0,8619,0},
	{9825,6,0,10553,0}, {9832,7,0,10611,0}, {9840,6,0,8610,0}, {9847,3,0,10923,0}, {9851,6,0,10521,0},
	{9858,4,0,10925,0}, {9863,5,0,10925,65024}, {9869,5,0,10508,0}, {9875,5,0,10098,0}, {9881,6,0,123,0},
	{9888,6,0,91,0}, {9895,5,0,10635,0}, {9901,7,0,10639,0}, {9909,7,0,10637,0}, {9917,6,0,318,0}, {9924,6,0,316,0},
	{9931,5,0,8968,0}, {9937,4,0,123,0}, {9942,3,0,1083,0}, {9946,4,0,10550,0}, {9951,5,0,8220,0}, {9957,6,0,8222,0},
	{9964,7,0,10599,0}, {9972,8,0,10571,0}, {9981,4,0,8626,0}, {9986,2,0,8804,0}, {9989,9,0,8592,0}, {9999,13,0,8610,0},
	{10013,15,0,8637,0}, {10029,13,0,8636,0}, {10043,14,0,8647,0}, {10058,14,0,8596,0}, {10073,15,0,8646,0},
	{10089,17,0,8651,0}, {10107,19,0,8621,0}, {10127,14,0,8907,0}, {10142,3,0,8922,0}, {10146,3,0,8804,0},
	{10150,4,0,8806,0}, {10155,8,0,10877,0}, {10164,3,0,10877,0}, {10168,5,0,10920,0}, {10174,6,0,10879,0},
	{10181,7,0,10881,0}, {10189,8,0,10883,0}, {10198,4,0,8922,65024}, {10203,6,0,10899,0}, {10210,10,0,10885,0},
	{10221,7,0,8918,0}, {10229,9,0,8922,0}, {10239,10,0,10891,0}, {10250,7,0,8822,0}, {10258,7,0,8818,0},
	{10266,6,0,10620,0}, {10273,6,0,8970,0}, {10280,3,0,120105,0}, {10284,2,0,8822,0}, {10287,3,0,10897,0},
	{10291,5,0,8637,0}, {10297,5,0,8636,0}, {10303,6,0,10602,0}, {10310,5,0,9604,0}, {10316,4,0,1113,0},
	{10321,2,0,8810,0}, {10324,5,0,8647,0}, {10330,8,0,8990,0}, {10339,6,0,10603,0}, {10346,5,0,9722,0},
	{10352,6,0,320,0}, {10359,6,0,9136,0}, {10366,10,0,9136,0}, {10377,3,0,8808,0}, {10381,4,0,10889,0},
	{10386,8,0,10889,0}, {10395,3,0,10887,0}, {10399,4,0,10887,0}, {10404,5,0,8808,0}, {10410,5,0,8934,0},
	{10416,5,0,10220,0}, {10422,5,0,8701,0}, {10428,5,0,10214,0}, {10434,13,0,10229,0}, {10448,18,0,10231,0},
	{10467,10,0,10236,0}, {10478,14,0,10230,0}, {10493,13,0,8619,0}, {10507,14,0,8620,0}, {10522,5,0,10629,0},
	{10528,4,0,120157,0}, {10533,6,0,10797,0}, {10540,7,0,10804,0}, {10548,6,0,8727,0}, {10555,6,0,95,0},
	{10562,3,0,9674,0}, {10566,7,0,9674,0}, {10574,4,0,10731,0}, {10579,4,0,40,0}, {10584,6,0,10643,0},
	{10591,5,0,8646,0}, {10597,8,0,8991,0}, {10606,5,0,8651,0}, {10612,6,0,10605,0}, {10619,3,0,8206,0},
	{10623,5,0,8895,0}, {10629,6,0,8249,0}, {10636,4,0,120001,0}, {10641,3,0,8624,0}, {10645,4,0,8818,0},
	{10650,5,0,10893,0}, {10656,5,0,10895,0}, {10662,4,0,91,0}, {10667,5,0,8216,0}, {10673,6,0,8218,0},
	{10680,6,0,322,0}, {10687,2,1,60,0}, {10690,4,0,10918,0}, {10695,5,0,10873,0}, {10701,5,0,8918,0},
	{10707,6,0,8907,0}, {10714,6,0,8905,0}, {10721,6,0,10614,0}, {10728,7,0,10875,0}, {10736,6,0,10646,0},
	{10743,4,0,9667,0}, {10748,5,0,8884,0}, {10754,5,0,9666,0}, {10760,8,0,10570,0}, {10769,7,0,10598,0},
	{10777,9,0,8808,65024}, {10787,4,0,8808,65024}, {10792,5,0,8762,0}, {10798,4,1,175,0}, {10803,4,0,9794,0},
	{10808,4,0,10016,0}, {10813,7,0,10016,0}, {10821,3,0,8614,0}, {10825,6,0,8614,0}, {10832,10,0,8615,0},
	{10843,10,0,8612,0}, {10854,8,0,8613,0}, {10863,6,0,9646,0}, {10870,6,0,10793,0}, {10877,3,0,1084,0},
	{10881,5,0,8212,0}, {10887,13,0,8737,0}, {10901,3,0,120106,0}, {10905,3,0,8487,0}, {10909,5,1,181,0},
	{10915,3,0,8739,0}, {10919,6,0,42,0}, {10926,6,0,10992,0}, {10933,6,1,183,0}, {10940,5,0,8722,0},
	{10946,6,0,8863,0}, {10953,6,0,8760,0}, {10960,7,0,10794,0}, {10968,4,0,10971,0}, {10973,4,0,8230,0},
	{10978,6,0,8723,0}, {10985,6,0,8871,0}, {10992,4,0,120158,0}, {10997,2,0,8723,0}, {11000,4,0,120002,0},
	{11005,6,0,8766,0}, {11012,2,0,956,0}, {11015,8,0,8888,0}, {11024,5,0,8888,0}, {11030,3,0,8921,824},
	{11034,3,0,8811,8402}, {11038,4,0,8811,824}, {11043,10,0,8653,0}, {11054,15,0,8654,0}, {11070,3,0,8920,824},
	{11074,3,0,8810,8402}, {11078,4,0,8810,824}, {11083,11,0,8655,0}, {11095,6,0,8879,0}, {11102,6,0,8878,0},
	{11109,5,0,8711,0}, {11115,6,0,324,0}, {11122,4,0,8736,8402}, {11127,3,0,8777,0}, {11131,4,0,10864,824},
	{11136,5,0,8779,824}, {11142,5,0,329,0}, {11148,7,0,8777,0}, {11156,5,0,9838,0}, {11162,7,0,9838,0},
	{11170,8,0,8469,0}, {11179,4,1,160,0}, {11184,5,0,8782,824}, {11190,6,0,8783,824}, {11197,4,0,10819,0},
	{11202,6,0,328,0}, {11209,6,0,326,0}, {11216,5,0,8775,0}, {11222,8,0,10861,824}, {11231,4,0,10818,0},
	{11236,3,0,1085,0}, {11240,5,0,8211,0}, {11246,2,0,8800,0}, {11249,5,0,8663,0}, {11255,6,0,10532,0},
	{11262,5,0,8599,0}, {11268,7,0,8599,0}, {11276,5,0,8784,824}, {11282,6,0,8802,0}, {11289,6,0,10536,0},
	{11296,5,0,8770,824}, {11302,6,0,8708,0}, {11309,7,0,8708,0}, {11317,3,0,120107,0}, {11321,3,0,8807,824},
	{11325,3,0,8817,0}, {11329,4,0,8817,0}, {11334,5,0,8807,824}, {11340,9,0,10878,824}, {11350,4,0,10878,824},
	{11355,5,0,8821,0}, {11361,3,0,8815,0}, {11365,4,0,8815,0}, {11370,5,0,8654,0}, {11376,5,0,8622,0},
	{11382,5,0,10994,0}, {11388,2,0,8715,0}, {11391,3,0,8956,0}, {11395,4,0,8954,0}, {11400,3,0,8715,0},
	{11404,4,0,1114,0}, {11409,5,0,8653,0}, {11415,3,0,8806,824}, {11419,5,0,8602,0}, {11425,4,0,8229,0},
	{11430,3,0,8816,0}, {11434,10,0,8602,0}, {11445,15,0,8622,0}, {11461,4,0,8816,0}, {11466,5,0,8806,824},
	{11472,9,0,10877,824}, {11482,4,0,10877,824}, {11487,5,0,8814,0}, {11493,5,0,8820,0}, {11499,3,0,8814,0},
	{11503,5,0,8938,0}, {11509,6,0,8940,0}, {11516,4,0,8740,0}, {11521,4,0,120159,0}, {11526,3,1,172,0},
	{11530,5,0,8713,0}, {11536,6,0,8953,824}, {11543,8,0,8949,824}, {11552,7,0,8713,0}, {11560,7,0,8951,0},
	{11568,7,0,8950,0}, {11576,5,0,8716,0}, {11582,7,0,8716,0}, {11590,7,0,8958,0}, {11598,7,0,8957,0},
	{11606,4,0,8742,0}, {11611,9,0,8742,0}, {11621,6,0,11005,8421}, {11628,5,0,8706,824}, {11634,7,0,10772,0},
	{11642,3,0,8832,0}, {11646,6,0,8928,0}, {11653,4,0,10927,824}, {11658,5,0,8832,0}, {11664,7,0,10927,824},
	{11672,5,0,8655,0}, {11678,5,0,8603,0}, {11684,6,0,10547,824}, {11691,6,0,8605,824}, {11698,11,0,8603,0},
	{11710,5,0,8939,0}, {11716,6,0,8941,0}, {11723,3,0,8833,0}, {11727,6,0,8929,0}, {11734,4,0,10928,824},
	{11739,4,0,120003,0}, {11744,9,0,8740,0}, {11754,14,0,8742,0}, {11769,4,0,8769,0}, {11774,5,0,8772,0},
	{11780,6,0,8772,0}, {11787,5,0,8740,0}, {11793,5,0,8742,0}, {11799,7,0,8930,0}, {11807,7,0,8931,0},
	{11815,4,0,8836,0}, {11820,5,0,10949,824}, {11826,5,0,8840,0}, {11832,7,0,8834,8402}, {11840,9,0,8840,0},
	{11850,10,0,10949,824}, {11861,5,0,8833,0}, {11867,7,0,10928,824}, {11875,4,0,8837,0}, {11880,5,0,10950,824},
	{11886,5,0,8841,0}, {11892,7,0,8835,8402}, {11900,9,0,8841,0}, {11910,10,0,10950,824}, {11921,4,0,8825,0},
	{11926,6,1,241,0}, {11933,4,0,8824,0}, {11938,13,0,8938,0}, {11952,15,0,8940,0}, {11968,14,0,8939,0},
	{11983,16,0,8941,0}, {12000,2,0,957,0}, {12003,3,0,35,0}, {12007,6,0,8470,0}, {12014,5,0,8199,0},
	{12020,6,0,8877,0}, {12027,6,0,10500,0}, {12034,4,0,8781,8402}, {12039,6,0,8876,0}, {12046,4,0,8805,8402},
	{12051,4,0,62,8402}, {12056,7,0,10718,0}, {12064,6,0,10498,0}, {12071,4,0,8804,8402}, {12076,4,0,60,8402},
	{12081,7,0,8884,8402}, {12089,6,0,10499,0}, {12096,7,0,8885,8402}, {12104,5,0,8764,8402}, {12110,5,0,8662,0},
	{12116,6,0,10531,0}, {12123,5,0,8598,0}, {12129,7,0,8598,0}, {12137,6,0,10535,0}, {12144,2,0,9416,0},
	{12147,6,1,243,0}, {12154,4,0,8859,0}, {12159,4,0,8858,0}, {12164,5,1,244,0}, {12170,3,0,1086,0},
	{12174,5,0,8861,0}, {12180,6,0,337,0}, {12187,4,0,10808,0}, {12192,4,0,8857,0}, {12197,6,0,10684,0},
	{12204,5,0,339,0}, {12210,5,0,10687,0}, {12216,3,0,120108,0}, {12220,4,0,731,0}, {12225,6,1,242,0},
	{12232,3,0,10689,0}, {12236,5,0,10677,0}, {12242,3,0,937,0}, {12246,4,0,8750,0}, {12251,5,0,8634,0},
	{12257,5,0,10686,0}, {12263,7,0,10683,0}, {12271,5,0,8254,0}, {12277,3,0,10688,0}, {12281,5,0,333,0},
	{12287,5,0,969,0}, {12293,7,0,959,0}, {12301,4,0,10678,0}, {12306,6,0,8854,0}, {12313,4,0,120160,0},
	{12318,4,0,10679,0}, {12323,5,0,10681,0}, {12329,5,0,8853,0}, {12335,2,0,8744,0}, {12338,5,0,8635,0},
	{12344,3,0,10845,0}, {12348,5,0,8500,0}, {12354,7,0,8500,0}, {12362,4,1,170,0}, {12367,4,1,186,0},
	{12372,6,0,8886,0}, {12379,4,0,10838,0}, {12384,7,0,10839,0}, {12392,3,0,10843,0}, {12396,4,0,8500,0},
	{12401,6,1,248,0}, {12408,4,0,8856,0}, {12413,6,1,245,0}, {12420,6,0,8855,0}, {12427,8,0,10806,0},
	{12436,4,1,246,0}, {12441,5,0,9021,0}, {12447,3,0,8741,0}, {12451,4,1,182,0}, {12456,8,0,8741,0},
	{12465,6,0,10995,0}, {12472,5,0,11005,0}, {12478,4,0,8706,0}, {12483,3,0,1087,0}, {12487,6,0,37,0},
	{12494,6,0,46,0}, {12501,6,0,8240,0}, {12508,4,0,8869,0}, {12513,7,0,8241,0}, {12521,3,0,120109,0},
	{12525,3,0,966,0}, {12529,4,0,981,0}, {12534,6,0,8499,0}, {12541,5,0,9742,0}, {12547,2,0,960,0}, {12550,9,0,8916,0},
	{12560,3,0,982,0}, {12564,6,0,8463,0}, {12571,7,0,8462,0}, {12579,6,0,8463,0}, {12586,4,0,43,0},
	{12591,8,0,10787,0}, {12600,5,0,8862,0}, {12606,7,0,10786,0}, {12614,6,0,8724,0}, {12621,6,0,10789,0},
	{12628,5,0,10866,0}, {12634,6,1,177,0}, {12641,7,0,10790,0}, {12649,7,0,10791,0}, {12657,2,0,177,0},
	{12660,8,0,10773,0}, {12669,4,0,120161,0}, {12674,5,1,163,0}, {12680,2,0,8826,0}, {12683,3,0,10931,0},
	{12687,4,0,10935,0}, {12692,5,0,8828,0}, {12698,3,0,10927,0}, {12702,4,0,8826,0}, {12707,10,0,10935,0},
	{12718,11,0,8828,0}, {12730,6,0,10927,0}, {12737,11,0,10937,0}, {12749,8,0,10933,0}, {12758,8,0,8936,0},
	{12767,7,0,8830,0}, {12775,5,0,8242,0}, {12781,6,0,8473,0}, {12788,4,0,10933,0}, {12793,5,0,10937,0},
	{12799,6,0,8936,0}, {12806,4,0,8719,0}, {12811,8,0,9006,0}, {12820,8,0,8978,0}, {12829,8,0,8979,0},
	{12838,4,0,8733,0}, {12843,6,0,8733,0}, {12850,5,0,8830,0}, {12856,6,0,8880,0}, {12863,4,0,120005,0},
	{12868,3,0,968,0}, {12872,6,0,8200,0}, {12879,3,0,120110,0}, {12883,4,0,10764,0}, {12888,4,0,120162,0},
	{12893,6,0,8279,0}, {12900,4,0,120006,0}, {12905,11,0,8461,0}, {12917,7,0,10774,0}, {12925,5,0,63,0},
	{12931,7,0,8799,0}, {12939,4,1,34,0}, {12944,5,0,8667,0}, {12950,4,0,8658,0}, {12955,6,0,10524,0},
	{12962,5,0,10511,0}, {12968,4,0,10596,0}, {12973,4,0,8765,817}, {12978,6,0,341,0}, {12985,5,0,8730,0},
	{12991,8,0,10675,0}, {13000,4,0,10217,0}, {13005,5,0,10642,0}, {13011,5,0,10661,0}, {13017,6,0,10217,0},
	{13024,5,1,187,0}, {13030,4,0,8594,0}, {13035,6,0,10613,0}, {13042,5,0,8677,0}, {13048,7,0,10528,0},
	{13056,5,0,10547,0}, {13062,6,0,10526,0}, {13069,6,0,8618,0}, {13076,6,0,8620,0}, {13083,6,0,10565,0},
	{13090,7,0,10612,0}, {13098,6,0,8611,0}, {13105,5,0,8605,0}, {13111,6,0,10522,0}, {13118,5,0,8758,0},
	{13124,9,0,8474,0}, {13134,5,0,10509,0}, {13140,5,0,10099,0}, {13146,6,0,125,0}, {13153,6,0,93,0},
	{13160,5,0,10636,0}, {13166,7,0,10638,0}, {13174,7,0,10640,0}, {13182,6,0,345,0}, {13189,6,0,343,0},
	{13196,5,0,8969,0}, {13202,4,0,125,0}, {13207,3,0,1088,0}, {13211,4,0,10551,0}, {13216,7,0,10601,0},
	{13224,5,0,8221,0}, {13230,6,0,8221,0}, {13237,4,0,8627,0}, {13242,4,0,8476,0}, {13247,7,0,8475,0},
	{13255,8,0,8476,0}, {13264,5,0,8477,0}, {13270,4,0,9645,0}, {13275,3,1,174,0}, {13279,6,0,10621,0},
	{13286,6,0,8971,0}, {13293,3,0,120111,0}, {13297,5,0,8641,0}, {13303,5,0,8640,0}, {13309,6,0,10604,0},
	{13316,3,0,961,0}, {13320,4,0,1009,0}, {13325,10,0,8594,0}, {13336,14,0,8611,0}, {13351,16,0,8641,0},
	{13368,14,0,8640,0}, {13383,15,0,8644,0}, {13399,17,0,8652,0}, {13417,16,0,8649,0}, {13434,15,0,8605,0},
	{13450,15,0,8908,0}, {13466,4,0,730,0}, {13471,12,0,8787,0}, {13484,5,0,8644,0}, {13490,5,0,8652,0},
	{13496,3,0,8207,0}, {13500,6,0,9137,0}, {13507,10,0,9137,0}, {13518,5,0,10990,0}, {13524,5,0,10221,0},
	{13530,5,0,8702,0}, {13536,5,0,10215,0}, {13542,5,0,10630,0}, {13548,4,0,120163,0}, {13553,6,0,10798,0},
	{13560,7,0,10805,0}, {13568,4,0,41,0}, {13573,6,0,10644,0}, {13580,8,0,10770,0}, {13589,5,0,8649,0},
	{13595,6,0,8250,0}, {13602,4,0,120007,0}, {13607,3,0,8625,0}, {13611,4,0,93,0}, {13616,5,0,8217,0},
	{13622,6,0,8217,0}, {13629,6,0,8908,0}, {13636,6,0,8906,0}, {13643,4,0,9657,0}, {13648,5,0,8885,0},
	{13654,5,0,9656,0}, {13660,8,0,10702,0}, {13669,7,0,10600,0}, {13677,2,0,8478,0}, {13680,6,0,347,0},
	{13687,5,0,8218,0}, {13693,2,0,8827,0}, {13696,3,0,10932,0}, {13700,4,0,10936,0}, {13705,6,0,353,0},
	{13712,5,0,8829,0}, {13718,3,0,10928,0}, {13722,6,0,351,0}, {13729,5,0,349,0}, {13735,4,0,10934,0},
	{13740,5,0,10938,0}, {13746,6,0,8937,0}, {13753,8,0,10771,0}, {13762,5,0,8831,0}, {13768,3,0,1089,0},
	{13772,4,0,8901,0}, {13777,5,0,8865,0}, {13783,5,0,10854,0}, {13789,5,0,8664,0}, {13795,6,0,10533,0},
	{13802,5,0,8600,0}, {13808,7,0,8600,0}, {13816,4,1,167,0}, {13821,4,0,59,0}, {13826,6,0,10537,0},
	{13833,8,0,8726,0}, {13842,5,0,8726,0}, {13848,4,0,10038,0}, {13853,3,0,120112,0}, {13857,6,0,8994,0},
	{13864,5,0,9839,0}, {13870,6,0,1097,0}, {13877,4,0,1096,0}, {13882,8,0,8739,0}, {13891,13,0,8741,0},
	{13905,3,1,173,0}, {13909,5,0,963,0}, {13915,6,0,962,0}, {13922,6,0,962,0}, {13929,3,0,8764,0}, {13933,6,0,10858,0},
	{13940,4,0,8771,0}, {13945,5,0,8771,0}, {13951,4,0,10910,0}, {13956,5,0,10912,0}, {13962,4,0,10909,0},
	{13967,5,0,10911,0}, {13973,5,0,8774,0}, {13979,7,0,10788,0}, {13987,7,0,10610,0}, {13995,5,0,8592,0},
	{14001,13,0,8726,0}, {14015,6,0,10803,0}, {14022,8,0,10724,0}, {14031,4,0,8739,0}, {14036,5,0,8995,0},
	{14042,3,0,10922,0}, {14046,4,0,10924,0}, {14051,5,0,10924,65024}, {14057,6,0,1100,0}, {14064,3,0,47,0},
	{14068,4,0,10692,0}, {14073,6,0,9023,0}, {14080,4,0,120164,0}, {14085,6,0,9824,0}, {14092,9,0,9824,0},
	{14102,4,0,8741,0}, {14107,5,0,8851,0}, {14113,6,0,8851,65024}, {14120,5,0,8852,0}, {14126,6,0,8852,65024},
	{14133,5,0,8847,0}, {14139,6,0,8849,0}, {14146,8,0,8847,0}, {14155,10,0,8849,0}, {14166,5,0,8848,0},
	{14172,6,0,8850,0}, {14179,8,0,8848,0}, {14188,10,0,8850,0}, {14199,3,0,9633,0}, {14203,6,0,9633,0},
	{14210,6,0,9642,0}, {14217,4,0,9642,0}, {14222,5,0,8594,0}, {14228,4,0,120008,0}, {14233,6,0,8726,0},
	{14240,6,0,8995,0}, {14247,6,0,8902,0}, {14254,4,0,9734,0}, {14259,5,0,9733,0}, {14265,15,0,1013,0},
	{14281,11,0,981,0}, {14293,5,0,175,0}, {14299,3,0,8834,0}, {14303,4,0,10949,0}, {14308,6,0,10941,0},
	{14315,4,0,8838,0}, {14320,7,0,10947,0}, {14328,7,0,10945,0}, {14336,5,0,10955,0}, {14342,5,0,8842,0},
	{14348,7,0,10943,0}, {14356,7,0,10617,0}, {14364,6,0,8834,0}, {14371,8,0,8838,0}, {14380,9,0,10949,0},
	{14390,9,0,8842,0}, {14400,10,0,10955,0}, {14411,6,0,10951,0}, {14418,6,0,10965,0}, {14425,6,0,10963,0},
	{14432,4,0,8827,0}, {14437,10,0,10936,0}, {14448,11,0,8829,0}, {14460,6,0,10928,0}, {14467,11,0,10938,0},
	{14479,8,0,10934,0}, {14488,8,0,8937,0}, {14497,7,0,8831,0}, {14505,3,0,8721,0}, {14509,4,0,9834,0},
	{14514,3,0,8835,0}, {14518,4,1,185,0}, {14523,4,1,178,0}, {14528,4,1,179,0}, {14533,4,0,10950,0},
	{14538,6,0,10942,0}, {14545,7,0,10968,0}, {14553,4,0,8839,0}, {14558,7,0,10948,0}, {14566,7,0,10185,0},
	{14574,7,0,10967,0}, {14582,7,0,10619,0}, {14590,7,0,10946,0}, {14598,5,0,10956,0}, {14604,5,0,8843,0},
	{14610,7,0,10944,0}, {14618,6,0,8835,0}, {14625,8,0,8839,0}, {14634,9,0,10950,0}, {14644,9,0,8843,0},
	{14654,10,0,10956,0}, {14665,6,0,10952,0}, {14672,6,0,10964,0}, {14679,6,0,10966,0}, {14686,5,0,8665,0},
	{14692,6,0,10534,0}, {14699,5,0,8601,0}, {14705,7,0,8601,0}, {14713,6,0,10538,0}, {14720,5,1,223,0},
	{14726,6,0,8982,0}, {14733,3,0,964,0}, {14737,4,0,9140,0}, {14742,6,0,357,0}, {14749,6,0,355,0}, {14756,3,0,1090,0},
	{14760,4,0,8411,0}, {14765,6,0,8981,0}, {14772,3,0,120113,0}, {14776,6,0,8756,0}, {14783,9,0,8756,0},
	{14793,5,0,952,0}, {14799,8,0,977,0}, {14808,6,0,977,0}, {14815,11,0,8776,0}, {14827,8,0,8764,0},
	{14836,6,0,8201,0}, {14843,5,0,8776,0}, {14849,6,0,8764,0}, {14856,5,1,254,0}, {14862,5,0,732,0}, {14868,5,1,215,0},
	{14874,6,0,8864,0}, {14881,8,0,10801,0}, {14890,6,0,10800,0}, {14897,4,0,8749,0}, {14902,4,0,10536,0},
	{14907,3,0,8868,0}, {14911,6,0,9014,0}, {14918,6,0,10993,0}, {14925,4,0,120165,0}, {14930,7,0,10970,0},
	{14938,4,0,10537,0}, {14943,6,0,8244,0}, {14950,5,0,8482,0}, {14956,8,0,9653,0}, {14965,12,0,9663,0},
	{14978,12,0,9667,0}, {14991,14,0,8884,0}, {15006,9,0,8796,0}, {15016,13,0,9657,0}, {15030,15,0,8885,0},
	{15046,6,0,9708,0}, {15053,4,0,8796,0}, {15058,8,0,10810,0}, {15067,7,0,10809,0}, {15075,5,0,10701,0},
	{15081,7,0,10811,0}, {15089,8,0,9186,0}, {15098,4,0,120009,0}, {15103,4,0,1094,0}, {15108,5,0,1115,0},
	{15114,6,0,359,0}, {15121,5,0,8812,0}, {15127,16,0,8606,0}, {15144,17,0,8608,0}, {15162,4,0,8657,0},
	{15167,4,0,10595,0}, {15172,6,1,250,0}, {15179,4,0,8593,0}, {15184,5,0,1118,0}, {15190,6,0,365,0},
	{15197,5,1,251,0}, {15203,3,0,1091,0}, {15207,5,0,8645,0}, {15213,6,0,369,0}, {15220,5,0,10606,0},
	{15226,6,0,10622,0}, {15233,3,0,120114,0}, {15237,6,1,249,0}, {15244,5,0,8639,0}, {15250,5,0,8638,0},
	{15256,5,0,9600,0}, {15262,6,0,8988,0}, {15269,8,0,8988,0}, {15278,6,0,8975,0}, {15285,5,0,9720,0},
	{15291,5,0,363,0}, {15297,3,1,168,0}, {15301,5,0,371,0}, {15307,4,0,120166,0}, {15312,7,0,8593,0},
	{15320,11,0,8597,0}, {15332,13,0,8639,0}, {15346,14,0,8638,0}, {15361,5,0,8846,0}, {15367,4,0,965,0},
	{15372,5,0,978,0}, {15378,7,0,965,0}, {15386,10,0,8648,0}, {15397,6,0,8989,0}, {15404,8,0,8989,0},
	{15413,6,0,8974,0}, {15420,5,0,367,0}, {15426,5,0,9721,0}, {15432,4,0,120010,0}, {15437,5,0,8944,0},
	{15443,6,0,361,0}, {15450,4,0,9653,0}, {15455,5,0,9652,0}, {15461,5,0,8648,0}, {15467,4,1,252,0},
	{15472,7,0,10663,0}, {15480,4,0,8661,0}, {15485,4,0,10984,0}, {15490,5,0,10985,0}, {15496,5,0,8872,0},
	{15502,6,0,10652,0}, {15509,10,0,1013,0}, {15520,8,0,1008,0}, {15529,10,0,8709,0}, {15540,6,0,981,0},
	{15547,5,0,982,0}, {15553,9,0,8733,0}, {15563,4,0,8597,0}, {15568,6,0,1009,0}, {15575,8,0,962,0},
	{15584,12,0,8842,65024}, {15597,13,0,10955,65024}, {15611,12,0,8843,65024}, {15624,13,0,10956,65024},
	{15638,8,0,977,0}, {15647,15,0,8882,0}, {15663,16,0,8883,0}, {15680,3,0,1074,0}, {15684,5,0,8866,0},
	{15690,3,0,8744,0}, {15694,6,0,8891,0}, {15701,5,0,8794,0}, {15707,6,0,8942,0}, {15714,6,0,124,0},
	{15721,4,0,124,0}, {15726,3,0,120115,0}, {15730,5,0,8882,0}, {15736,5,0,8834,8402}, {15742,5,0,8835,8402},
	{15748,4,0,120167,0}, {15753,5,0,8733,0}, {15759,5,0,8883,0}, {15765,4,0,120011,0}, {15770,6,0,10955,65024},
	{15777,6,0,8842,65024}, {15784,6,0,10956,65024}, {15791,6,0,8843,65024}, {15798,7,0,10650,0}, {15806,5,0,373,0},
	{15812,6,0,10847,0}, {15819,5,0,8743,0}, {15825,6,0,8793,0}, {15832,6,0,8472,0}, {15839,3,0,120116,0},
	{15843,4,0,120168,0}, {15848,2,0,8472,0}, {15851,2,0,8768,0}, {15854,6,0,8768,0}, {15861,4,0,120012,0},
	{15866,4,0,8898,0}, {15871,5,0,9711,0}, {15877,4,0,8899,0}, {15882,5,0,9661,0}, {15888,3,0,120117,0},
	{15892,5,0,10234,0}, {15898,5,0,10231,0}, {15904,2,0,958,0}, {15907,5,0,10232,0}, {15913,5,0,10229,0},
	{15919,4,0,10236,0}, {15924,4,0,8955,0}, {15929,5,0,10752,0}, {15935,4,0,120169,0}, {15940,6,0,10753,0},
	{15947,6,0,10754,0}, {15954,5,0,10233,0}, {15960,5,0,10230,0}, {15966,4,0,120013,0}, {15971,6,0,10758,0},
	{15978,6,0,10756,0}, {15985,5,0,9651,0}, {15991,4,0,8897,0}, {15996,6,0,8896,0}, {16003,6,1,253,0},
	{16010,4,0,1103,0}, {16015,5,0,375,0}, {16021,3,0,1099,0}, {16025,3,1,165,0}, {16029,3,0,120118,0},
	{16033,4,0,1111,0}, {16038,4,0,120170,0}, {16043,4,0,120014,0}, {16048,4,0,1102,0}, {16053,4,1,255,0},
	{16058,6,0,378,0}, {16065,6,0,382,0}, {16072,3,0,1079,0}, {16076,4,0,380,0}, {16081,6,0,8488,0}, {16088,4,0,950,0},
	{16093,3,0,120119,0}, {16097,4,0,1078,0}, {16102,7,0,8669,0}, {16110,4,0,120171,0}, {16115,4,0,120015,0},
	{16120,3,0,8205,0}, {16124,4,0,8204,0},
};
/* The first name by its first byte from 'A' on, and the end. */
static const uint16_t BY_LETTER[] = {
	0, 19, 31, 65, 119, 144, 152, 173, 185, 210, 217, 225, 284, 293, 364, 387,
	406, 410, 454, 494, 516, 552, 569, 574, 578, 588, 598, 598, 598, 598, 598, 598,
	598, 658, 773, 867, 931, 993, 1029, 1088, 1116, 1166, 1174, 1184, 1336, 1373, 1538, 1591,
	1657, 1667, 1769, 1921, 1977, 2024, 2066, 2077, 2101, 2112, 2125,
};

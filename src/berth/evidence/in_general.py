"""Sentences that tell how things are, or are to be done, and of nothing that is broken.

Guides, release notes, proposals and minutes use the words of a fault: `if the driver is missing`, `fixed a crash`,
`make sure that nouveau is off`. What is known here are the forms of such sentences, hardly ever a subject. Whoever
tells of a fault of his own says `I`, `we`, `my`, `our`: a form that both use asks for none of them.
"""

from __future__ import annotations

import re

LONGEST = 700  # characters of a line that somebody wrote

# What may stand before the first word: a dot of a list, a number, `Note:`, `Step 3.`
_FIRST = (
    r"^\W*(?:\d+(?:\.\d+)*[.)]? +)?(?:(?:notes?|tip|hint|important|info|caution|faq|q|a|step \d+)\b\W*(?:\d+\W+)?)?"
)
_OWN = r"(?!.*\b(?:I|I'm|I've|my|we|we've|our|us)\b)"
_DO = (
    r"(?:please|you|try|reboot|restart|run|check|install|reload|add|use|set|see|make|increase|enable|disable|remove|"
    r"delete|turn|look|contact|drain|reinstall|upgrade|update|verify|open|consider|label|create|call|ask|follow|wait|"
    r"switch|unset|replace|start|stop|purge|load|do|go|reset|lower|raise|reduce|change)\b"
)
_ENDS_WELL = r"(?:crash|hang|deadlock|fail|leak|stuck|left|pending|block|los[et]|evict|panic|wait|restart)\w*"

# What to do where something is broken: a message in it is an example.
_ADVICE = re.compile(
    rf"{_FIRST}(?:(?:if|in case|when(?:ever)?)\b{_OWN}[^\n]*?, (?:then )?{_DO}"
    r"|(?:make sure|ensure|be sure|verify|remember|keep in mind|note) (?:that|if|whether|you|the|to|how)\b"
    r"|check (?:that|if|whether)\b|you may (?:see|get|notice)\b"
    rf"|to (?:fix|solve|avoid|prevent|work around|downgrade|upgrade|resolve|mitigate)\b{_OWN}[^.\n]*?[, ]{_DO})"
    r"|^\W*requirements?:|\b(?:write|add|define|configure) (?:the|an?) alert (?:for|on|when|if)\b|^\W*alert \w+:"
    rf"|^{_OWN}.*\bmust (?:be|run)\b[^.\n]*, otherwise\b|\bif\b{_OWN}.*, so (?:turn|disable|enable|set|add|use)\b"
    r"|^\W*without (?!th(?:is|e (?:change|fix|patch))\b)[^,\n]*, .*\b(?:will|can|often|would)\b"
    r"|^\W*added (?:logic|support|functionality|an? (?:option|flag|check|test|metric))\b",
    re.IGNORECASE,
)
_OPENS = re.compile(
    rf"{_FIRST}(?:if|in case|when|make|ensure|be|verify|remember|keep|note|check|you|to|requirement|without|added)",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    rf"{_FIRST}(?:if|in case|unless|whether)\b{_OWN}|^\W*if\b[^,\n]*\bwe (?:look|will|can|should|could|may)\b"
    r"|\bcheck that\b|\bso (?:disable|enable|turn|add|set|use|install) (?:it|them|this|the|an?)\b",
    re.IGNORECASE,
)
# What was mended, and what is new.
_NEWS = re.compile(
    r"^\W*(?:[\w.]{1,12}: )?(?:"
    r"(?:fixed|fixes|improved|deprecated|added|introduced) (?!(?:by|it|this|that|them|once|my|mine|our)\b)"
    r"|(?:bug ?fixes|resolved issues|fixed issues|breaking changes?|what's new|known (?:issues|limitations)|"
    r"release notes|changelog)\b|previously,|in this release\b)"
    rf"|\bno longer (?:be |get |gets |being |getting )?{_ENDS_WELL}"
    r"|\bfixed an? (?:bug|issue|problem|crash|regression|race|leak)\b(?!.*\bby\b)"
    r"|^\W*fix(?:es)? (?:\S+ ){1,4}(?:crash|leak|race|panic|bug|deadlock|hang)\w*\b"
    r"|^\W*(?:docs|test|chore|refactor|ci|perf)(?:\([^)]*\))?: |^revert \"|^\W*(?:[\w/ -]{1,20}: )?handle\b"
    r"|^\W*(?:add|allow|support|introduce|provide) (?:an? |more |unit |new |optional )*(?:support|tests?|options?"
    r"|flags?|metrics?|checks?|alerts?|examples?|ability|way)\b"
    r"|^\W*(?:add|allow|let(?! me\b)|enable)\b.*\bso (?:that|the|users?|we)\b"
    r"|^\W*(?:take|mark|drain|cordon|taint|evict|expose|report|show|let(?! me\b)|skip|avoid|prevent|do not|don't)\b"
    rf"{_OWN}.*\b(?:when|if|during)\b",
    re.IGNORECASE,
)
# An item of a list of changes or steps.
_ITEM = re.compile(
    r"^\s*[-*\u2022]\s+\W{0,4}(?:add|fix|update|bump|support|skip|use|change|enable|remove|simplify|mount|move|"
    r"improve|switch|allow|drop|rename|evict|unload|uncordon|make|catch|detect|avoid|prevent|identify|save|disable|check|install|"
    r"build|fail|alert|test|moved|bumped|updated|renamed|promote|refactor|document)\b(?! (?:to|of|with|for|in)\b)",
    re.IGNORECASE,
)
# What somebody wishes, asks or plans.
_WISH = re.compile(
    r"\bwould be (?:nice|great|good|helpful|useful|cool)\b(?!.{0,40}\bhelp)"
    r"|\bfeature request\b|\bplease add\b|\b(?:could|can) you add\b"
    r"|\b(?:I'd|I would|we would|we'd) like to (?:be able|have|see|know)\b|\b(?:is|would) it (?:be )?possible\b"
    r"|\bas an? (?:\w+ ){1,3}I want\b|^\W*(?:proposal|goals?|non-goals|alternatives considered|motivation|"
    r"failure modes?|risks?(?: and mitigations?)?|agenda|minutes|action items?|retro|standup|reminder|announc\w+|todo|"
    r"lgtm|nit|escalation|tip|hint|suggestion|rfc|checklist|lessons? learned|post-?mortem|kep-\d+|feature|docs typo|"
    r"glossary|policy|contributions welcome|course week \d+|abstract"
    r"|dear (?:all|users|colleagues))\b[^\w.]*(?:[:,]|\.(?:\s|$))"
    r"|^\W*(?:notes from|minutes of|dear (?:all|users|colleagues)|announcing|lgtm)\b"
    r"|\b(?:should|may|must|can) (?:I|we) (?!not\b)[^.?]*\?|\bwhat happens (?:if|when|to)\b"
    r"|^\W*(?:this )?PR (?:adds|fixes|removes|changes)\b|\bthere are scenarios\b|\bit "
    r"it is (?:possible|necessary),? (?:that|to)\b"
    r"|\bwe (?:study|propose|present|evaluate|compared?)\b|^\W*symptoms?:.*\b(?:cause|action)s?:",
    re.IGNORECASE,
)
# What is over, or as it has to be.
_OVER = re.compile(
    r"^\W*(?:solved|resolved|nevermind|never mind)\b[!.,]|\bworks like a charm\b|\bthank you\b[!.]*$"
    r"|\b(?:has|have) been (?:\w+ )?(?:fine|stable|ok|healthy|well)(?: ever)? since\b"
    r"|\b(?:incident|issue|ticket)\b[^.]*\bis closed\b|\b(?:is|are) normal\b",
    re.IGNORECASE,
)
# What a document says of its subject, or to its reader.
_DOCUMENT = re.compile(
    r"\b(?:is|are) (?:an?|the) (?:\S+ ){0,5}?(?:tool|controller|feature|service|framework|library|parameter|variable|"
    r"technology|platform|viewer|system|dependency|file|chart|technique|scheduler|primer)\b"
    r"|\bis (?:\S+ ){0,6}?system (?:that|which|for)\b"
    r"|\b(?:allows?|lets?|enables?) (?:you|users|operators|admins|administrators|developers|teams|multiple|workloads|"
    r"each|a (?:single|physical)|the \w+ to|scheduling|for)\b"
    r"|\b(?:this|the following) (?:guide|document|page|section|topic|lesson|tutorial|article|chapter|blog|"
    r"chart|table)\b"
    r"|\bprerequisites?\b|\b(?:is|are) used to\b|\b(?:can|may|should) be used\b"
    r"|\b(?:if|when|once|before|so that|unless|whether) you(?:'re|r)?\b"
    r"|\byou (?:can|may|might|must|need to|have to|will need|want)\b"
    r"|\b(?:pending|waits?|wait|rejected|suspended|queued|suspending) until\b|\bor it will never\b"
    r"|^\W*(?:a|an|each|every|any) (?:\w+ ){1,3}?(?:may|might) (?!not\b)"
    r"|\b(?:may|might) (?:need|be (?:exceeded|used|given|shared|set|left out))\b"
    r"|\bthe default (?:value|setting)s? (?:is|are)\b"
    r"|\b(?:is|are) (?:important|recommended|likely to)\b|^\W*(?:[\w -]+: )?unlike\b|\bon some systems\b"
    r"|\b(?:detects?|monitors?|watches|checks? for|covers|catches) (?:\S+ ){0,6}(?:errors?|issues|failures|faults|"
    r"health)\b"
    r"|\b(?:users|admins|administrators|operators) (?:can|may|must|should)\b"
    r"|\btaints? (?:prevent|mark|keep|repel)s?\b|\bsupport the \w+ feature\b|\b(?:this|that) option\b"
    r"|\b(?:pending|missing|up) (?:only )?(?:unless|when)\b|\bGPUs (?:on nodes )?can\b"
    r"|^\W*\d+[.)] (?:blacklist|check|remove|install|disable|enable|reboot|verify|create|configure|"
    r"update)\b[^.]{0,40}$",
    re.IGNORECASE,
)
_OWN_WORDS = re.compile(r"\b(?:I|I'm|I've|my|we|we've|our|us|mine)\b", re.IGNORECASE)
_COMPLAINT = re.compile(
    r"\b(?:do(?:es)? not|don't|doesn't|not) work\b|\bcomplain\w*|\bis failing\b|\bseems?\b|\bbugs?\b|\blet me know\b",
    re.IGNORECASE,
)
# A whole sentence, and what in it would tell of something that happened.
_SENTENCE = re.compile(r"^\W*[A-Z].*[a-z)]\.$", re.DOTALL)
_FAULTY = (
    r"\b(?:issues?|errors?|fails?|failing|failed|wrong\w*|incorrect\w*|stuck|broken?|breaks?|crash\w*|hangs?|missing|"
    r"mismatch\w*|problems?|unexpected\w*|ignor\w+|rejected|refus\w+|conflict\w*|leak\w*|dies|die|lost|loses?|"
    r"suspect\w*|asleep)\b"
)
_HAPPENED = re.compile(
    r"\b(?:was|were|did|had|got|stopped|crashed|died|went|found|became|tried|turned|broke|fell|noticed|happened|saw|"
    r"could|used|executed|installed|rebooted|changed|have|has|already|still|currently|right now|now|only|but|however|"
    r"unfortunately|instead|seems?|caused|specifically|never|always|no longer|after|since|yet)\b"
    rf"|n't\b|\b(?:does|do|is|are|can|will) not\b|\bcannot\b|\bunable\b|[`\"]|{_FAULTY}",
    re.IGNORECASE,
)
_ILL = re.compile(rf"\b(?:no|not|none|never|zero|only|still|unable|cannot|gone)\b|n't\b|\b0\b|{_FAULTY}", re.IGNORECASE)
# Words of a fault that is denied.
_DENIED = re.compile(
    r"\b(?:no|without|not a single|never any)(?: any| more)? (?:\w+[- ]){0,3}?"
    r"(?:errors?|throttling|problems?|hangs?|complaints?|issues?|failures?|crash(?:es)?|contention|blockers?)\b"
    r"(?! (?:message|log|output|code|is|are|in|from))"
    r"|\b(?:cannot|can't|not|won't|doesn't|never)(?: be)? (?:affect|impact|touch|disturb)\w*"
    r"|\b(?:has|have|had|is|are|was|were)(?: not|n't) (?:yet |ever )?(?:fallen|failed|crashed|broken|hung|overheat\w*"
    r"|down)(?: off the bus)?\b|\bruled out (?:an? |any |the )?[\w/-]+(?: \w+){0,3}"
    r"|\bdid(?:n't| not) have (?:the |any |a )?\w+ (?:shut|crash|hang|fail)\w*(?: down)?"
    r"|\b(?:thus |to )?avoid(?:s|ing)? (?:the )?\w+|(?<=[;:] )if\b[^.;]*",
    re.IGNORECASE,
)

_SENTENCES = re.compile(r"(?<=[a-z)`'\"][.!?]) +(?=[A-Z])")
_WITHOUT = re.compile(r"\bwithout (?:any )?(?:errors?|problems?|issues?|trouble)\b|\bno errors\b", re.IGNORECASE)


def says_what_is(line: str) -> bool:
    """Whether a line gives a condition or an instruction, news of a release, a wish, or the end of a story."""
    return _instructs(line) or _tells_of_success(line)


def _instructs(line: str) -> bool:
    return any(form.search(line) for form in (_ADVICE, _CONDITION, _NEWS, _ITEM, _WISH, _OVER))


def _tells_of_success(line: str) -> bool:
    return bool(_WITHOUT.search(line)) and not _ILL.search(without_denied(line))


def ends_well(line: str) -> bool:
    """Whether a line ends a story: what was wrong in it is so no more."""
    return bool(_OVER.search(line))


def what_happened(line: str) -> str:
    """A line without its sentences of advice, for the others tell what happened; nothing where it begins with them."""
    if ends_well(line) or _tells_of_success(line):
        return ""
    first, *others = _SENTENCES.split(line)
    explains = is_of_document(line)
    if _instructs(first) or (explains and is_of_document(first)):
        return ""
    kept = (one for one in others if not (_instructs(one) or (explains and _DOCUMENT.search(one))))
    return " ".join((first, *kept))


def is_advice(line: str) -> bool:
    """Whether a line only tells what to do where something is broken: words of a component in it are an example."""
    # Each line of a log that says anything is asked: few get further than their first word.
    if not (_OPENS.match(line) or any(word in line for word in ("lert", ", otherwise", ", so "))):
        return False
    return bool(_ADVICE.search(line[:LONGEST]))


def is_of_document(line: str) -> bool:
    """Whether a line explains its subject, or speaks to a reader, and names nobody whom it happened to."""
    if _OWN_WORDS.search(line) or _COMPLAINT.search(line):
        return False
    return bool(_DOCUMENT.search(line) or (_SENTENCE.search(line) and not _HAPPENED.search(line)))


def without_denied(line: str) -> str:
    """The line without the faults that it says there are not."""
    return _DENIED.sub(" ", line)

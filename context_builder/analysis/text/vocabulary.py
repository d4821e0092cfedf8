"""English words that carry no topic, by what they do in a sentence.

Written for this project from general knowledge; no corpus was counted. Three lists, because
they are used differently: function words end a phrase, verbs of telling and doing end a phrase
too but may stand in for a keyword when a text has little else, and general words are part of a
phrase ("new method") yet never its point.
"""

from __future__ import annotations

from typing import Final

SUBJECTS: Final = frozenset("i we they you he she who i'm we're they're you're he's she's it".split())
"""Pronouns after which a plain word is a verb."""

MODALS: Final = frozenset(
    """can could will would shall should may might must cannot can't couldn't won't wouldn't shouldn't don't doesn't
    didn't to let's i'll we'll you'll they'll he'll she'll it'll i'd we'd they'd you'd gonna
    gotta wanna""".split()
)
"""Words after which a plain word is a verb, unless they begin a question; after ``to`` only before an object."""

FUNCTION_WORDS: Final = (
    SUBJECTS
    | MODALS
    | frozenset(
        """a an the this that these those there here some any each every either neither both all no none such same own
    another other others much many more most less least few fewer several enough lot lots bit me us them him her
    my our your their his its mine ours yours theirs myself ourselves yourself themselves itself himself herself
    one ones someone somebody something anyone anybody anything everyone everybody everything nobody nothing
    what which whom whose when where why how whatever whichever whoever whenever wherever and or but nor so yet
    for if then else than because since till although though while whereas unless until once whether as of at by in
    into on onto off out over under up down from with without within about above below between among amongst
    across through throughout during before after against toward towards upon via per outside inside beyond
    behind beside besides despite except around along near like unlike versus vs plus amid is are was were be
    been being am isn't aren't wasn't weren't 's 're have has had having haven't hasn't hadn't i've we've you've
    they've it's that's there's here's what's who's let's how's where's
    do does did not doing done get gets got getting gotten
    ain't also too very really quite rather just only even still already ever never always often sometimes
    usually again maybe perhaps almost nearly well actually basically literally obviously essentially apparently
    probably possibly definitely certainly honestly simply clearly exactly totally pretty kinda sorta however
    therefore thus hence moreover furthermore nevertheless nonetheless otherwise instead meanwhile accordingly
    consequently additionally finally firstly secondly thirdly lastly respectively now today tomorrow yesterday
    soon later ago away back anyway together apart forth first second third last next two three four five six
    seven eight nine ten hundred thousand million billion
    according due regarding concerning including following based given
    using etc eg ie e.g i.e et al cf ibid yes yeah yep yup nope nah ok okay oh ah uh um er erm hm hmm huh mm mhm
    ha uhuh mm-hmm mmm mm-mm uh-huh uh-oh wow hey hi hello bye goodbye please thanks thank thankyou sorry welcome
    cheers alright right sure fine cool haha lol gosh damn gee ugh ooh aha whoa""".split()
    )
)
"""Words that end a phrase and are never a keyword."""

_REGULAR_VERBS: Final = """
accept accommodate accomplish account achieve acknowledge acquire adapt add admit adopt affect agree aim allow announce
answer appear apply appreciate argue arise arrive ask assert assess assist associate assume attach attain attempt avoid
become begin believe belong break bring build buy calculate call cause chat choose cite claim clarify come
compare complete comprise conclude conduct confirm connect consider consist constitute contain continue contribute
convince correspond create deal decide decrease define deliver demonstrate denote depend derive describe deserve
determine develop devote differ discover discuss display draw emerge emphasize employ enable encounter encourage
enhance enjoy ensure enter establish estimate evaluate evolve examine exceed exhibit exist expect explain
exploit explore express extend extract facilitate fail fall feel figure find finish fit focus follow forget form
formulate fulfil fulfill gain generate give go grow guarantee guess handle hang happen hate hear help hold hope
identify ignore illustrate imagine implement imply impose improve include incorporate increase indicate inform
inspire intend introduce investigate invite involve join keep kill know lack lead lean leave lend let lie
listen live look lose love maintain make manage mean meet mention minimize maximize miss motivate move necessitate need
obtain observe occur offer open outline overcome own participate perform permit pick play possess
prefer prepare present preserve prevent proceed produce promise promote propose prove provide publish pull push put quit
raise reach realise realize recall receive recognize recommend reduce refer reflect regard relate rely remain remember
remind remove repeat replace reply report represent require resolve retain retrieve reveal
run say see seek seem select sell send serve set settle show simplify sit solve sound speak specify
spend stand start state stay stop strive suffer suggest suit support suppose surround survive take talk tell tend think
throw tie try turn undergo understand undertake update use utilize utilise validate vary verify view visit wait
walk want
watch welcome win wish wonder worry write yield
"""

_IRREGULAR_VERBS: Final = """
arose arisen became began begun brought built bought came chose chosen dealt drew drawn fell fallen felt found
gave given
went gone grew grown heard held kept knew known led left lent lay lain lost made meant met ran read said saw seen sought
sold sent shown sat spoke spoken spent stood took taken told thought threw thrown understood undertaken underwent won
wrote written lying tying dying put got proven
"""


def _inflected(verb: str) -> tuple[str, ...]:
    """Return the verb with its regular endings: ``use`` gives ``uses``, ``used``, ``using``."""
    if verb.endswith("e"):
        return verb, verb + "s", verb + "d", verb[:-1] + "ing"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb, verb[:-1] + "ies", verb[:-1] + "ied", verb + "ing"
    sibilant = verb.endswith(("s", "x", "ch", "sh"))
    doubled = verb + verb[-1]
    return (verb, verb + ("es" if sibilant else "s"), verb + "ed", verb + "ing", doubled + "ed", doubled + "ing")


VERBS: Final = frozenset(form for verb in _REGULAR_VERBS.split() for form in _inflected(verb)) | frozenset(
    _IRREGULAR_VERBS.split()
)
"""Verbs, in every form, that hardly ever belong to a term."""

DATES: Final = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april june july august
    september october november december""".split()
)

GENERAL_WORDS: Final = DATES | frozenset(
    """able abstract actual additional advantage advantages age aim aims alternative amount answer approach approaches
    area aspect aspects author authors available aware bad background basic basis best better big bunch case
    cases certain chance change changes choice class clear common comparison complete complex complicated
    concept concepts conclusion conclusions condition conditions context contribution correct couple course
    current day days deal detail details difference differences different difficult difficulties difficulty
    direct direction discussion easy effect effective effectiveness efficient end entire especially essential
    evening exact example examples existing extent fact factor factors far feature features few final finding
    findings first form former full fun further future general generally good great group groups guy guys half
    hand hard high highly hour hours idea ideas importance important individual influence information initial
    interest interesting issue issues item job key kid kind kinds knowledge large large-scale last late latter
    level levels likely limit line list literature little long longer low main major man manner meaning means
    member minute minutes moment month months morning name nature necessary need new nice night normal novel now
    number numbers object objective old open opportunity option order original outcome overall paper part
    parameters particular parts past people percent perfect person perspective piece place point points poor
    possibility possible potential practical practice present previous primary problem problems process property
    proper purpose purposes question questions quick range rate ready real reason reasons recent relationship
    relative relevant research result results role rough same section sense series set several short significant
    similar simple single situation size small solution solutions somebody sort special specific stage standard
    start state states step steps strong structure stuff subject successful sufficient suitable table task tasks
    technique techniques term terms thing things time times today top total true type types typical
    understanding unique unit use useful usual value values variety various view way ways week weeks while whole
    wide woman word words work works world worth wrong year years young yesterday tonight everyone method
    methods proposed efficiently effectively significantly particularly recently previously widely higher lower
    larger smaller greater faster slower easier harder stronger weaker wider shorter older newer younger highest
    lowest largest smallest greatest fastest combined mutual conventional largely mainly mostly commonly
    typically successfully directly easily fully greatly partly relatively amazing awesome incredible fantastic
    wonderful lovely beautiful gorgeous brilliant excellent terrible horrible awful weird crazy funny exciting
    excited happy glad proud sad sorry tough rewarding inspiring inspired nervous grateful thankful welcoming
    impressive interested surprised worried busy tired nicely super totally folk folks pic cause 'cause buddy""".split()
)
"""Words that may stand inside a phrase but name no topic themselves."""

VAGUE_WORDS: Final = frozenset(
    """thing things stuff kind kinds sort way ways guy guys bunch day days time times year years week weeks month
    months hour hours minute minutes moment place part parts case cases point points lot end people person man
    woman word words number numbers one ones first last today fact half side couple chance question questions
    problem reason course good great look bit start talk guess hope need want thought mean""".split()
)
"""General words and verbs that say nothing even where they stand as a noun."""

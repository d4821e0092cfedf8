"""Phrases that mark what a sentence does, such as to decide, to promise or to refuse, in a table for each language.

In a phrase, ``^`` stands for the beginning of the sentence, ``…`` for up to three words, and ``name`` for the name of a
person.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from context_builder.analysis.analyst import PointKind


class Marker(Enum):
    """What a phrase does."""

    DECIDES = auto()
    PROPOSES = auto()
    PROMISES = auto()
    IS_DUE = auto()
    """Names the day by which something is to be done."""
    REQUESTS = auto()
    ACCEPTS = auto()
    NODS = auto()
    """Accepts what was asked; otherwise it only says that somebody listens."""
    DISAGREES = auto()
    REVERSES = auto()
    ASKS = auto()
    RAISES = auto()
    """Puts a question without asking it."""
    DOUBTS = auto()
    """Does not know, and so answers nothing."""
    CONCLUDES = auto()
    """Draws a conclusion, which decides something if others accept it."""
    SEEKS_ASSENT = auto()
    """Asks whether everybody accepts what was just said."""
    CHATTERS = auto()
    """Is about the room, the recording or the speaking itself."""
    IDLE = auto()
    """Looks like one of the others and is none."""


_ENGLISH: Final = {
    Marker.DECIDES: """^we decide to; ^we decide that; we decided;
        we've decided; we have … decided; i decided; i've decided; they decided; we
        agreed; we've agreed; we have … agreed; we all agreed; we settled on; we chose; we voted; the decision is;
        it's decided; it is decided; it's settled; that's settled; that's decided; is approved; was approved; motion
        carried; the final decision; our decision is; let's agree that; ^agreed … we; ^so we'll go with; ^we'll go
        with; ^we're going with; ^we go with; we will stick with; we'll stick with; we'll stay with""",
    Marker.CONCLUDES: """^okay then; ^ok then; ^alright then; ^all right then; ^right then; ^good then; ^fine then;
        ^then it's; ^then it has to; ^then we; ^then let's; ^then leave; ^then keep; ^then take; ^then use; ^okay so;
        ^ok so; ^okay we'll; ^ok we'll; ^so we; ^so it's; ^so not; ^okay no; ^okay it's; ^okay we; ^then no;
        ^no … then; ^okay wait with""",
    Marker.SEEKS_ASSENT: """okay with that; ok with that; fine with that; happy with that; agreed; all agree;
        everyone agree; everybody agree; any objections; does that work; is that okay; is that ok; is that fine;
        sound good; sounds good; work for everyone""",
    Marker.PROPOSES: """let's; let us; we could; we should; how about; what about; what if we; i propose; i suggest;
        i'd suggest; i'd propose; i would suggest; i would propose; i recommend; why don't we; ^why not; shall we;
        should we; could we; can we; my proposal; my suggestion; i'd like us to; i want us to; i just want it to; i
        want it to; i'd want it to; it's fine to; it's okay to; it's ok to; it is fine to; i vote for; i'm for;
        offering this as a suggestion; we might as well; couldn't we; we can just""",
    Marker.PROMISES: """i'll; i will; i'm going to; i shall; i'm gonna; i can take … by; i should; i probably
        should; i need to; i have to; i've got to; name will; name is going to; someone needs to; somebody needs to;
        someone should; he'll; she'll; he will; she will; i promise; leave it to me; i'm on it; action item; next
        step; assigned to; will take care of; takes care of; name can take; name can do; i can do that; i can
        do it; i can take that""",
    Marker.IS_DUE: """by monday; by tuesday; by wednesday; by thursday; by friday; by tomorrow; by next week;
        by the end of""",
    Marker.REQUESTS: """can you; could you; would you; will you; please; would you like to; would you mind""",
    Marker.ACCEPTS: """^fine; ^agreed; ^i agree; ^sounds good; ^sounds great; ^good idea; ^great idea; ^deal;
        ^perfect; ^that works; ^no objection; ^no objections; ^fair enough; ^let's do that; ^let's do
        it; ^let's do so; ^will do; ^i'm fine with; ^i can live with; ^yes let's; ^ok let's; ^okay let's; ^yes
        please; ^i'm with; ^makes sense; ^approved; ^of course; ^gladly; ^i'll do that; ^i'll do it; ^you'll get;
        ^happy to; ^done; ^so be it; ^i like that; ^love it; ^that's fine; ^good for me; is fine with me;
        is fine by me; works for me; ^me too; ^same here""",
    Marker.NODS: """^yes; ^yep; ^yeah; ^ok; ^okay; ^sure; ^alright; ^all right; ^absolutely; ^definitely; ^right;
        ^certainly; ^exactly; ^good; ^great""",
    Marker.DISAGREES: """i disagree; i don't agree; i do not agree; i strongly disagree; i can't agree; i object; ^i
        don't think; ^no; ^nope; i'm not convinced; i am not convinced; i'm not so sure; i doubt; you're wrong;
        that's wrong; that's not true; that's not right; not necessarily; on the contrary; beg to differ; that's a
        bad idea; that's the bad idea; i'm against; i wouldn't; ^but i don't; ^well i don't; ^well but; ^but what
        about; i see it differently; not true""",
    Marker.REVERSES: """^no we; ^no let's; ^no it; ^no not; ^no wait; ^actually let's; ^actually we; ^actually i'll;
        ^actually it; ^actually no; instead; scratch that; changed our mind; changed our minds; changed my mind; i
        meant; my mistake; ^so not; forget that; ^correction; on second thought; rather than; no longer; not … but;
        take that back; i was wrong; after all; ^wait""",
    Marker.ASKS: """^what is; ^what are; ^what was; ^what do; ^what does; ^what did; ^what should; ^what would;
        ^what about; ^how is; ^how are; ^how do; ^how does; ^how did; ^how can; ^how could; ^how should; ^how would;
        ^how many; ^how much; ^how long; ^how about; ^why is; ^why are; ^why do; ^why does; ^why did; ^why don't;
        ^who is; ^who's;
        ^who does; ^who will; ^who owns; ^who has; ^where is; ^where are; ^where do; ^when is; ^when do;
        ^when will; ^which … is; ^which … do; ^do you; ^do we; ^do they; ^does it; ^does that; ^did you; ^did we;
        ^can you; ^can we; ^could you; ^could we; ^would you; ^should we; ^are you; ^are we; ^are there; ^is there;
        ^is it; ^is that; ^has anyone; ^does anyone; ^does anybody; ^have you; ^have we; ^will you; ^will we""",
    Marker.RAISES: """the question is; question … is how; question … is what; question … is who; question … is
        whether; question … is when; question … is where; don't know how; don't know whether; don't know who; don't
        know what to; not sure whether; unclear whether; unclear who; unclear how; i wonder whether; i wonder how;
        we need to know; need to find out; remains to be seen""",
    Marker.DOUBTS: """i don't know; i do not know; we don't know; not sure; no idea; good question; no clue; that's
        open; ^open; who knows; i can't say; i wonder; hard to say; nobody knows; remains open; i didn't know; let
        me check; have to think about; need to think about; no answer
        yet; haven't answered; hasn't answered; haven't heard back; it depends; my question is; i have one question""",
    Marker.CHATTERS: """can you hear; can everybody hear; good morning; good afternoon; is everybody here; is
        everyone here; are we all on; are we all here; am i on; is this on; is it on; my turn; sorry i'm late; nice
        to meet; how are you; you're wired; want me to grab; hold that thought; see you; have a good; thank you all;
        thanks everyone; is it recording; are we recording; testing one two; talk to you""",
    Marker.IDLE: """can you see my; can you see it; can you see that; can you see them; let's see; let's say; let's
        look; let's hope; let's face; let's suppose; i'll say; i'll be; i'll have; i'll see; i'll never; i'll always;
        i'll bet; i'll admit; i'll tell you; i'll give you that; i'll assume; i will be; i will say; i will never; i
        should say; i should be; i should have; i should know; i should mention; i have to say; i have to admit; i
        need to know; i have to be; i'll just say; i'm going to be; i'm going to say; i have to do that anyway; let's
        assume; i'll go first; i'll start; can you hear; could you repeat; can you repeat; would you say; do you know
        what; what do you mean; you know what; no problem; no doubt; no one; no wonder; no matter; no worries; no
        longer than; fine art; rather than later; i'm going to bed; i'm going home; i'm going to the; i meant to; can
        we start; shall we start; ^let's start with; let's move on; let's go on; let's continue; let's begin; let's
        get started; i'd say; we should have; we could have; he'll want; she'll want; he will want; she will want;
        he'll love; she'll love; he'll know; she'll know; he'll like; she'll like; i wouldn't have; i don't think so
        either; what if we had; not only … but; i'm going to go; i'll be back; i'll stop; i'll shut; i have to go;
        i'll let you; what about you; how about you; he will be; she will be; she'll be; he'll be; i have to ask; i'll
        pick up on; i'll think; i'll explain; i'll talk about; i'll come back; i'll come to; i'll go through; i'll leave
        it; i'll turn to; i will not; i won't; what was; i'll put the kettle; i'll hold you to; i'll cry; i'll die;
        i'll kill myself; i'll kill you; i'll kill him; i'll kill her; i'm going to kill myself; i'm going to kill you;
        i'm going to die; i have to think; i need to think; i'm going to set … on fire;
        i'll set … on fire; good point""",
}

_GERMAN: Final = {
    Marker.DECIDES: """wir haben … beschlossen; wir haben … entschieden; wir haben uns … geeinigt; haben wir …
        beschlossen; haben wir … entschieden; haben wir uns … geeinigt; ^wir beschließen;
        ist beschlossen; ist entschieden;
        beschlossene sache; wir bleiben bei; wir einigen uns auf; wir entscheiden uns für; wir nehmen also; wir
        machen es also; abgemacht wir; also machen wir; dann machen wir; dann nehmen wir; dann bleiben wir""",
    Marker.CONCLUDES: """vertagen wir; wir vertagen; verschieben wir; wir verschieben; ^dann leihen wir; ^dann kaufen
        wir; ^dann lassen wir; ^dann treffen wir; ^dann streichen wir; ^gut dann; ^okay dann; ^ok dann; ^dann … also;
        ^also dann; ^dann ist es; ^also gut; ^okay also; ^also wir; ^dann kein; ^also kein; ^dann keine; ^also keine;
        ^dann bleibt es; ^es bleibt … bei""",
    Marker.SEEKS_ASSENT: """einverstanden; alle dafür; in ordnung so; passt das; ist das okay; ist das in ordnung;
        gibt es einwände; einwände""",
    Marker.PROPOSES: """lass uns; lasst uns; wir könnten; wir sollten; sollten wir; sollen wir; ich schlage vor; ich
        würde vorschlagen; mein vorschlag; ich würde sagen wir; wie wäre es; wie wär's; warum … nicht einfach;
        können wir nicht; wollen wir; wir können doch; ich bin dafür""",
    Marker.PROMISES: """ich werde; ich schicke; ich schick; ich schreibe; ich schreib; ich prüfe; ich prüf; ich
        bestelle; ich bestell; ich kümmere mich; ich übernehme; ich übernehm; ich mache; ich bereite … vor;
        ich frage; ich frag; ich rufe; ich ruf … an; ich sende; ich erledige; ich teste; ich besorge; ich besorg; ich
        organisiere; ich entwerfe; ich schaue; ich liefere; ich buche; ich buch; ich kläre; ich klär; ich
        bringe; ich baue; kümmert sich um; jemand muss; jemand sollte; ich muss noch; name wird; name
        übernimmt; name schickt; name schreibt; name bestellt; name prüft; name macht; mache ich bis; nächster schritt;
        schicke ich; schick ich; rufe ich; ruf ich; schreibe ich; schreib ich; frage ich; frag ich; prüfe ich; prüf
        ich; bestelle ich; bestell ich; sag ich ihm; sag ich ihr; sag ich ihnen; sag ich
        denen; das mache ich; das mach ich; das übernehme ich; das übernehm ich; kann ich
        übernehmen""",
    Marker.IS_DUE: """bis montag; bis dienstag; bis mittwoch; bis donnerstag; bis freitag; bis morgen; bis ende""",
    Marker.REQUESTS: """kannst du; könntest du; können sie; könnten sie; würdest du; würden sie; bitte … bis;
        ^bitte; machst du; schickst du; übernimmst du""",
    Marker.ACCEPTS: """^einverstanden; ^abgemacht; ^gut; ^in ordnung; ^gute idee; ^klingt gut; ^passt; ^machen wir;
        ^mach ich; ^mache ich; ^so machen wir; ^geht klar; ^alles klar; ^gerne; ^gern; ^dafür; ^stimme zu; ^ich
        stimme … zu; ^bin dabei; ^beschlossen; ^wird gemacht; ^das passt; ^kein einwand; ^von mir aus; passt mir;
        ^mir auch; ^finde ich auch; ^sehe ich auch so""",
    Marker.NODS: "^ja; ^okay; ^klar; ^sicher; ^genau; ^jawohl; ^richtig; ^natürlich",
    Marker.DISAGREES: """^nein; ^nee; ich sehe das anders; sehe ich anders; sehe ich nicht so; ich bin dagegen; ich
        bin anderer meinung; da bin ich anderer meinung; stimmt nicht; das stimmt so nicht; ich glaube nicht; ich
        bezweifle; das glaube ich nicht; bin nicht überzeugt; bin mir nicht so sicher; ^im gegenteil; ich
        widerspreche; finde ich nicht""",
    Marker.REVERSES: """^nein wir; ^nein doch; ^doch nicht; doch lieber; stattdessen; nicht … sondern; anders
        überlegt; ^moment; ich meinte; mein fehler; ^also nicht; ^dann nicht; vergiss das; vergesst das; ^korrektur;
        doch nicht; ^eigentlich sollten; nicht mehr; doch erst""",
    Marker.ASKS: """^was ist; ^was sind; ^wie ist; ^wie viel; ^wie viele; ^wie lange; ^wie machen; ^warum ist; ^wer
        ist; ^wer macht; ^wer kümmert; ^wo ist; ^wann ist; ^wann kommt; ^welche … ist; ^gibt es; ^hast du; ^können
        wir; ^müssen wir""",
    Marker.RAISES: """die frage ist; wissen nicht ob; wissen nicht wie; wissen noch nicht; weiß nicht ob; weiß nicht
        wie; unklar ob; unklar ist; unklar wer; unklar wie; ich frage mich ob; ich frage mich wie; offen ist; bleibt
        die frage""",
    Marker.DOUBTS: """weiß ich nicht; weiß nicht; ich weiß es nicht; keine ahnung; gute frage; nicht sicher; ist
        offen; bleibt offen; ^offen; noch unklar; keine antwort; noch nicht geantwortet;
        kommt darauf an; muss ich nachsehen""",
    Marker.CHATTERS: """guten morgen; guten tag; hallo zusammen; hört ihr mich; hört man mich; kannst du mich hören;
        sind alle da; wie geht es dir; wie geht's; bis nächste woche dann; schönes wochenende; danke euch; schönen
        tag; schönen abend""",
    Marker.IDLE: """lass uns anfangen; fangen wir an; ich mache mir sorgen; ich mach mir sorgen; ich werde nicht; ich
        frage mich; ich frag mich; frag ich mich; frage ich mich; kein problem; ich mache weiter; hört ihr mich;
        kannst du mich hören; ich muss sagen; nicht nur … sondern; wir sollten anfangen; gut dass; gut für""",
}

_FRENCH: Final = {
    Marker.DECIDES: """^on décide de; ^on décide que; ^nous décidons; on a décidé;
        nous avons décidé; nous avons … décidé; on a … décidé; on s'est mis d'accord;
        nous sommes d'accord pour; on est d'accord pour; c'est décidé; c'est entendu; la décision est; j'ai décidé;
        on a convenu; nous avons convenu; on retient; nous retenons; on part sur; on garde donc; on a choisi; nous
        avons choisi; on fait comme ça; on laisse tomber""",
    Marker.CONCLUDES: """^alors non; ^bon alors; ^d'accord alors; ^ok alors; ^alors on; ^donc on; ^alors nous; ^donc
        nous; ^alors c'est; ^donc c'est; ^alors pas; ^donc pas; ^donc; ^d'accord donc;
        ^très bien donc; ^alors … donc""",
    Marker.SEEKS_ASSENT: """d'accord; ça convient; ça vous va; ça te va; tout le monde est d'accord; des objections""",
    Marker.PROPOSES: """on pourrait; nous pourrions; on devrait; nous devrions; je propose; je suggère; ^et si on;
        ^si on; et si nous; pourquoi ne pas; pourquoi on ne; il faudrait; allons-y pour; prenons; gardons;
        utilisons; ma proposition; je vote pour""",
    Marker.PROMISES: """je vais; je m'en occupe; je m'occupe; j'enverrai; je t'envoie; je vous envoie; j'envoie; je
        ferai; je rédigerai; je préparerai; j'écrirai; je prends … en charge; je me charge; je contacte; je commande;
        je réserve; je vérifierai; je prépare; je rédige; j'appellerai; j'appelle; je regarderai; je demanderai; je
        termine; je finirai; je l'ajouterai; j'ajouterai; je lui écris; je leur écris; je lui demande; je lui envoie;
        je te l'envoie; je vous l'envoie; je l'envoie; je l'appelle; il faut que je; quelqu'un doit; il faut que
        quelqu'un; name va; name s'en occupe; name s'occupe; name enverra; prochaine étape""",
    Marker.IS_DUE: """d'ici lundi; d'ici mardi; d'ici mercredi; d'ici jeudi; d'ici vendredi; d'ici demain;
        avant lundi; avant vendredi""",
    Marker.REQUESTS: """peux-tu; pouvez-vous; pourrais-tu; pourriez-vous; tu peux; vous pouvez; tu pourrais; vous
        pourriez; merci de""",
    Marker.ACCEPTS: """^d'accord; ^entendu; ^ça marche; ^ça me convient; ^ça me va; ^bonne idée; ^très bien;
        ^parfait; ^accepté; ^adopté; ^c'est bon; ^je suis d'accord; ^volontiers; ^avec plaisir; ^faisons ça;
        ^faisons comme ça; ^on fait ça; ^on fait comme ça; ^c'est noté; ^marché conclu; ^allons-y; ^pas d'objection;
        ^oui d'accord; ^vendu; ^c'est ça; ^moi aussi""",
    Marker.NODS: "^oui; ^ouais; ^bien sûr; ^exactement; ^exact; ^bien; ^absolument",
    Marker.DISAGREES: """^non; je ne suis pas d'accord; pas d'accord; je ne crois pas; je ne pense pas; j'en doute;
        je doute; c'est faux; ce n'est pas vrai; au contraire; je suis contre; je ne suis pas convaincu; je ne suis
        pas convaincue; je ne suis pas sûr que; je ne suis pas sûre que""",
    Marker.REVERSES: """^non on; ^non nous; ^non finalement; finalement; plutôt que; au lieu de; ^plutôt; à la place;
        changé d'avis; oublie ça; oubliez ça; ^correction; ^en fait on; ^en fait nous; pas … mais; on laisse tomber;
        ^alors non; je voulais dire; je me suis trompé; je me suis trompée""",
    Marker.ASKS: """^est-ce que; ^qu'est-ce que; ^qui est-ce; ^comment est-ce; ^pourquoi est-ce; ^quand est-ce; ^où
        est; ^combien de; ^quel est; ^quelle est; ^quels sont; ^quelles sont; ^qui va; ^qui s'occupe; ^comment on""",
    Marker.RAISES: """la question est; on ne sait pas si; on ne sait pas comment; on ne sait pas qui; je ne sais pas
        si; je ne sais pas comment; pas sûr que; je me demande si; je me demande comment; reste à savoir""",
    Marker.DOUBTS: """je ne sais pas; je sais pas; aucune idée; bonne question; on ne sait pas; pas sûr; pas sûre;
        reste ouvert; reste ouverte; point ouvert; pas de réponse; à voir; ça dépend""",
    Marker.CHATTERS: """bonjour; bonsoir; bonne semaine; bonne soirée; vous m'entendez; tu m'entends; tout le monde
        est; ça va; salut; bonne journée; merci à tous""",
    Marker.IDLE: """je vais bien; je vais mourir; je vais dire; je vais être; je vais voir; on pourrait dire; pas
        seulement … mais; tu peux répéter; vous pouvez répéter; vous m'entendez; je ne vais pas; je vais commencer; non
        plus""",
}

_SPANISH: Final = {
    Marker.DECIDES: """hemos decidido; decidimos; hemos acordado; acordamos; quedamos en; hemos quedado en; está
        decidido; queda decidido; la decisión es; nos quedamos con; hemos elegido; elegimos; he decidido; vamos con;
        optamos por; lo hacemos así""",
    Marker.CONCLUDES: """^entonces; ^vale entonces; ^vale pues; ^de acuerdo entonces; ^pues entonces; ^pues el; ^pues
        la; ^pues no; ^bueno pues; ^bueno entonces; ^así que""",
    Marker.SEEKS_ASSENT: """de acuerdo; está bien; le parece bien; os parece bien; te parece bien; le va bien; os va
        bien; te va bien; alguna objeción""",
    Marker.PROPOSES: """podríamos; deberíamos; propongo; sugiero; por qué no; qué tal si; ^y si; qué os parece si;
        qué les parece si; vamos a usar; vamos a probar; usemos; hagamos; probemos; dejemos; mi propuesta; yo
        votaría por; tendríamos que""",
    Marker.PROMISES: """voy a; yo me encargo; me encargo; me ocupo; yo lo hago; enviaré; mandaré; haré; escribiré;
        prepararé; revisaré; llamaré; preguntaré; redactaré; compraré; pediré; terminaré; os envío; te envío; te
        mando; os mando; alguien tiene que; alguien debe; tengo que; name va a; name se encarga; name enviará;
        siguiente paso; próximo paso; lo preparo; lo reviso; le mando; le envío; le escribo; le llamo; te llamo; te
        escribo; le cambio; lo consulto; lo pregunto; se lo mando; se lo envío; se lo dejo; le aviso; te aviso; os
        aviso; le confirmo; te confirmo""",
    Marker.IS_DUE: """antes del lunes; antes del martes; antes del miércoles; antes del jueves; antes del viernes;
        para el lunes; para el viernes""",
    Marker.REQUESTS: """puedes; podrías; puede usted; podría usted; pueden; podéis; ^por favor; te importa; por
        favor … antes""",
    Marker.ACCEPTS: """^de acuerdo; ^vale; ^me parece bien; ^buena idea; ^perfecto; ^hecho; ^trato hecho; ^muy bien;
        ^está bien; ^acordado; ^aprobado; ^estoy de acuerdo; ^claro que sí; ^adelante; ^sin objeciones; ^me gusta la
        idea; ^hagámoslo; ^sí de acuerdo; ^conforme; ^con gusto; ^yo también""",
    Marker.NODS: "^sí; ^si; ^claro; ^exacto; ^bueno; ^por supuesto; ^bien",
    Marker.DISAGREES: """^no; no estoy de acuerdo; no lo creo; no creo que; no me parece; lo dudo; dudo que; es
        falso; no es verdad; no es cierto; al contrario; estoy en contra; no estoy convencido; no estoy convencida;
        no estoy seguro de que; no lo veo así""",
    Marker.REVERSES: """^no al final; ^no hemos; ^no decidimos; ^no mejor; ^mejor; en vez de; en lugar de; al final;
        hemos cambiado de idea; cambiado de opinión; olvida eso; olvidad eso; ^corrección; no … sino; ya no; en
        realidad; ^espera; perdone; me equivoqué; quise decir; quería decir; ^entonces no""",
    Marker.ASKS: """^qué es; ^cómo es; ^cuándo es; ^cuánto cuesta; ^quién es; ^quién va; ^por qué es; ^dónde está;
        ^cuál es; ^cuántos; ^cuántas""",
    Marker.RAISES: """la pregunta es; no sabemos si; no sabemos cómo; no sabemos quién; no sé si; no sé cómo; me
        pregunto si; me pregunto cómo; falta saber; queda por saber""",
    Marker.DOUBTS: """no lo sé; no sé; no tengo idea; ni idea; buena pregunta; no sabemos; no estoy seguro; no estoy
        segura; queda abierto; queda abierta; no han contestado; no ha contestado; depende de; habrá que ver""",
    Marker.CHATTERS: """buenos días; buenas tardes; hola; me oís; me oyen; me escuchan; estamos todos; cómo estás;
        cómo estáis; gracias a todos; hasta luego; que tenga; que tengas; que tengan; buen día""",
    Marker.IDLE: """voy a decir; voy a ser; voy a morir; tengo que decir; no solo … sino; puedes repetir; me oís; me
        oyen; voy a empezar; no voy a; no hay problema; al final de; al final del; no se preocupe; no te
        preocupes; no pasa nada; no hay de qué; por qué no me; por qué no nos; por qué no te; por qué no se; por qué no
        le; por qué no ha; por qué no han; por qué no está; por qué no es; perdone que; le mando por""",
}

JAPANESE: Final = {
    Marker.DECIDES: r"(?:に|と|で|を|が)(?:決め|決定し|決まり)ました|ことに(?:し|決め|なり)ました"
    r"|(?:に|で)(?:し|行き|いき)ましょう[。！]?$|に(?:いた)?します[。！]?$|(?:は|で)?なし(?:で|にします)[。！]?$",
    Marker.PROPOSES: r"ませんか|ましょうか|たらどう|はどうですか|のはどう|提案(?:し|です)",
    Marker.PROMISES: r"(?:私|僕|わたし|こちら|当方)(?:から|が|で)[^。]{0,80}ます[。！]?$|ておきます|担当します"
    r"|(?:連絡|確認|相談|手配|予約|準備|用意|送付|報告|作成|調査|発注|注文)(?:を)?(?:いた)?します[。！]?$"
    r"|(?:申し込み|送り|調べ|聞き|書き|頼み)ます[。！]?$",
    Marker.REQUESTS: r"お願い(?:でき|し)ます|ください|(?:いただけ|もらえ)ますか",
    Marker.ACCEPTS: r"^[^。]{0,4}(?:賛成|わかりました|分かりました|了解|承知|そうしましょう|いいですね|大丈夫です)"
    r"|了解です[。！]?$",
    Marker.NODS: r"^(?:はい|ええ|うん|そうですね)",
    Marker.DISAGREES: r"^いいえ|反対です|そうは思いません|違うと思い",
    Marker.REVERSES: r"やっぱり|やはり|ではなく|じゃなく|^いや[、,]|変更(?:し|に|です)",
    Marker.ASKS: r"(?:ます|です|でしょう|ました|ません)か[。？]?$",
    Marker.RAISES: r"まだ(?:わから|分から|決まって|決めて)|未定です",
    Marker.DOUBTS: r"(?:わかり|分かり)ません|(?:わから|分から)ない|どうでしょう",
    Marker.CHATTERS: r"お疲れ(?:さま|様)|ありがとうございました|よろしくお願い(?:いた)?します[。！]?$"
    r"|始めましょう|ここまでに|話を戻し|^(?:すみません|失礼)[^。]{0,6}[。！]?$",
}
"""The same for a language that puts no blanks between words, as patterns of a sentence."""

LANGUAGES: Final = {"English": _ENGLISH, "German": _GERMAN, "French": _FRENCH, "Spanish": _SPANISH}

LABELS: Final = {
    PointKind.DECISION: """decision; decided; agreed; resolved; resolution; entscheidung; beschluss; beschlossen;
        décision; décidé; decisión; acuerdo; decidido; decisione; decisão; besluit; beslut; решение;
        決定; 决定; 決定事項; 결정; قرار""",
    PointKind.ACTION: """action; action item; actions; todo; to do; to-do; next step; next steps; task; aufgabe; zu
        tun; zu erledigen; nächster schritt; nächste schritte; action à faire; à faire; tâche; prochaine étape;
        tarea; pendiente; acción; por hacer; próximo paso; azione; ação; actie; задача; 課題; 任务;
        待办; やること; 할 일""",
    PointKind.QUESTION: """question; open; open question; open issue; open point; frage; offen; offene frage;
        offener punkt; ouvert; question ouverte; point ouvert; pregunta; abierto; pregunta abierta; duda; domanda;
        pergunta; vraag; вопрос; 質問; 问题; 未決; 질문; سؤال""",
    PointKind.PROPOSAL: """proposal; suggestion; idea; vorschlag; idee; proposition; idée; propuesta; proposta;
        voorstel; предложение; 提案; 建议; 제안""",
}
ALONE: Final = frozenset(
    """open offen ouvert abierto agreed decided resolved beschlossen décidé decidido acuerdo idea idee idée task actions
    pendiente duda action acción""".split()
)
"""Labels that are more often other words: they need a colon, and nothing else before it."""

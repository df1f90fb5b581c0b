"""Root: all that is proven before anything is split, for any engine that goes on from there.

Most of the gap of a relaxation is in the differences: a neuron's dv is only known as some share of its dz. Asked only
about pairs at least as far apart as the best one, linear programs narrow the range of every dz, which narrows the
model, which narrows the ranges again. A few rounds of this bring the bound close to the best pair, often all the way.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from likewise.activations import by_name
from likewise.bounds import TwinBounds, completed
from likewise.bounds.ball import excess
from likewise.bounds.encoding import Detail
from likewise.bounds.joint import Joint
from likewise.bounds.planes import Facets, Plane, can_lean, facets, placed, places
from likewise.bounds.template import Template
from likewise.bounds.tighten import ALL, Lemma, Tightener, open_neurons, tighten
from likewise.errors import SoundnessError
from likewise.problem import Problem
from likewise.proof import Log
from likewise.rounding import Array
from likewise.search.alike import brought_in, most_alike
from likewise.search.bounding import bound
from likewise.search.choose import influence
from likewise.search.compiled import COARSE, Swift, fits, is_round
from likewise.search.dive import dive
from likewise.search.pattern import matched
from likewise.search.polish import polish
from likewise.search.primal import Primal
from likewise.search.question import Question, ask
from likewise.search.relaxed import Relaxed
from likewise.search.reread import Told, reread
from likewise.search.run import Run, repaired
from likewise.search.score import Score
from likewise.search.scout import Order, Scout
from likewise.search.tree import Bounded, Half, Part
from likewise.solvers import Maximiser, Session

STALLED, SLOW = 0.95, 0.985  # a round that leaves more of the slack than this is the last one; where time is given
BENT = 0.05  # a share of the slack that is worth another tangent
OUTSIDE = 1e-7  # how far a point may exceed a ball made of tangents before one is drawn there
DIVE, DIVE_EVERY = 1.0, 2  # seconds at most to dive for a pair, and rounds between dives
MATCH, MATCHES = 0.3, 4  # seconds to look for people on given pieces, and how many of them to climb from
CLIMB = 0.2  # seconds to climb from where a dive ended
ROUNDS = 40
KEPT, KEPT_SWIFT = 16, 48  # points whose tangents are kept; where the kernel has them
LEANING = 1e-3  # beside the slack, by how much a point is outside of a plane that is worth drawing
SHARPER = 8  # times to draw tangents before going on


Tell = Callable[[Lemma], None]


@dataclass(slots=True, eq=False)
class Root:
    """One direction of a problem: `problem` is the inner one, `outer` what pairs must satisfy."""

    problem: Problem
    outer: Problem
    score: Score
    run: Run
    bounds: TwinBounds
    log: Log
    proven: float = math.inf  # of the whole, by a leaf of the log or by the output layer's bounds
    near: list[float] = field(default_factory=list)
    touches: list[Array] = field(default_factory=list)
    joints: dict[int, Joint] = field(default_factory=dict)  # what is shown of all differences together, by slots
    slots: int = 0  # of the proof that are taken
    margin: float = 0.0  # of joints, where a reader's intervals are not the same to the last digits
    planes: list[Plane] = field(default_factory=list)  # of curved neurons
    placed: TwinBounds | None = None  # what the planes' offsets hold within
    sampled: tuple[TwinBounds, dict[tuple[int, int], Facets]] | None = None
    primal: Primal | None = None
    scout: Scout | None = None
    matches: int = 0
    aimed: int = 0  # times that people were looked for where a joint is met
    told: float = 0.0  # the gap of the pair that the scout knows
    last: tuple[object, Relaxed] | None = None  # the basis of the whole, and the model it is of

    @property
    def is_straight(self) -> bool:
        """Whether the network is made of straight pieces up to its logit."""
        names = {name for layer in self.problem.network.layers for name in layer.activations}
        return all(by_name(name).is_piecewise_linear() for name in names)

    @property
    def is_compiled(self) -> bool:
        """Whether the kernel takes this problem."""
        return fits(self.problem)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What is worth narrowing: dz alone where a split at a kink settles z, z as well where curves need it short."""
        return ("dz",) if self.is_straight else ALL

    @property
    def influence(self) -> list[Array]:
        """How much each neuron moves the logit, roughly."""
        return influence(self.problem.network)

    def prove(self, t: float = 0.0) -> None:
        """Claim what the output layer's bounds alone prove; they are likewise's own, outward rounded.

        Bounds under a question's cut hold for pairs with a gap of at least its threshold `t`: no less can be claimed.
        """
        last = self.bounds.layers[-1]
        upper = self.score.upper(float(last.left.upper[0]), float(last.right.lower[0]), float(last.dz.upper[0]))
        self.proven = min(self.proven, max(upper, self.score.factor * t))
        self.run.prove(self.proven)

    def forward(self, share: float) -> None:
        """Tighten layer by layer with linear programs over the layers before, for a share of the time."""
        deadline = time.monotonic() + share * self.run.seconds_left
        for index in range(1, len(self.bounds.layers)):
            if not open_neurons(self.bounds.layers[index - 1]).any():
                continue
            template = Template(self.problem, self.bounds, Detail(ball=1e-4), index)
            session = Session(template.model(self.problem, self.bounds))
            zs = tighten(self.bounds, Tightener(template, session, deadline, self.telling(0, template)), first=index)
            tight = None if zs is None else completed(self.problem.network, self.bounds.reach, zs)
            if tight is None:
                raise SoundnessError("two proven bounds of the same value contradict each other")
            self.bounds = tight
            self.run.tick()
        self.prove()

    def narrow(self, share: float, kinds: Sequence[str] | None = None, most: float | None = None) -> None:
        """Narrow every neuron under the question's cut, round by round, while it pays; `kinds` of its own if None.

        A round that leaves more than `most` of the slack is the last one.
        Between rounds, the pair of the model's point is made real and climbed from: a better pair makes a sharper cut.
        The cut holds for every pair that reaches the threshold, so where it leaves nothing, none does. (It need not
        hold for the best pair of a later round, which may be wider than this round's and yet below its threshold.)
        """
        deadline = time.monotonic() + share * self.run.seconds_left
        before, most = math.inf, most or (STALLED if kinds is None else SLOW)
        for rounds in range(ROUNDS):
            self.hear()
            relaxed, session, slack, point = self._sharp({})  # a joint hides what narrowing wins
            if self.run.done or time.monotonic() > deadline:
                return
            if rounds % DIVE_EVERY == 0 and not self.is_compiled:
                part = Part(self.problem, self.bounds)
                self.dive(Bounded(slack, self.run.shown, part, point, session.basis, relaxed, 0, slack))
            if self.run.done or slack > most * before:
                return
            before = slack
            relaxed.demand(session, -relaxed.question.cut)
            if isinstance(session, Swift):
                session.accuracy = COARSE
            told: list[Told] = []
            tightener = Tightener(relaxed.template, session, deadline, self.telling(0, relaxed, told=told))
            zs = tighten(self.bounds, tightener, kinds or self.kinds)
            tight = None if zs is None else reread(self.problem, self.bounds, told)
            if tight is None:
                self.fall(relaxed.question.t)
                return
            self.bounds = tight
            self.prove(relaxed.question.t)

    def fall(self, t: float) -> None:
        """Claim that no pair reaches a threshold: lemmas contradict each other, which a reader sees by itself."""
        self.log.fell()
        self.log.empty(0)
        self.proven = min(self.proven, self.score.factor * t)
        self.run.prove(self.proven)

    def question(self) -> Question:
        """Ask for a little more than the best pair."""
        return ask(self.run, self.score, self.problem.network, self.near[-KEPT:])

    def relaxed(self, joints: Mapping[int, Joint] | None = None, is_tree: bool = False) -> Relaxed:
        """Return the model of the present question, with other joints than those that are known if they are given.

        That of a tree has places for planes of every part.
        """
        if self.planes and self.placed is not self.bounds:
            self.planes = placed(self.problem.network, self.bounds.layers, self.planes)
        self.placed = self.bounds
        return Relaxed(
            self.problem,
            self.bounds,
            self.score,
            self.question(),
            self.touches[-(KEPT_SWIFT if self.is_compiled else KEPT) :],
            {
                slot: replace(one, margin=self.margin)
                for slot, one in (self.joints if joints is None else joints).items()
            },
            self.planes,
            places(self.bounds.layers) if is_tree and can_lean(self.problem.network) else (),
        )

    def session(self, relaxed: Relaxed, bounds: TwinBounds | None = None) -> Maximiser:
        """Return the linear program of the whole, within other bounds if they are given."""
        if self.is_compiled:
            return Swift(self.problem, bounds or self.bounds, relaxed)
        return relaxed.session(
            self.problem, bounds or self.bounds, None if self.last is None else relaxed.adapted(*self.last)
        )

    def claim(self) -> None:
        """Claim what the model of the whole shows."""
        self._sharp()

    def _sharp(self, joints: Mapping[int, Joint] | None = None) -> tuple[Relaxed, Maximiser, float, Array]:
        """Bound the slack, with tangents drawn where the linear program's point asks for them; claim the bound."""
        for _ in range(SHARPER):
            relaxed = self.relaxed(joints)
            session = self.session(relaxed)
            slack, point = session.maximise(relaxed.objective)
            self.last = (session.basis, relaxed)
            upper = self.score.upper_from_slack(relaxed.question.t, slack)
            if upper < self.proven:
                self.proven = upper
                self.log.leaf(0, relaxed.argument(self.bounds, session.proof), slack)
            self.run.prove(upper)
            if self.run.done:
                break
            is_leaning = self.lean(relaxed, session.proof.multipliers, point, slack)
            if not self.draw(relaxed, point, slack) and not is_leaning:
                break
        return relaxed, session, slack, point

    def draw(self, relaxed: Relaxed, point: Array, slack: float) -> bool:
        """Note where a point asks for tangents of the score and of the ball; tell whether it does."""
        over, touch = excess(relaxed.template.compared[0], point[relaxed.template.compared[1]])
        is_outside = over > max(OUTSIDE, 0.02 * slack) and not self.is_blind and not self.is_round
        is_bent = relaxed.bent(point) > max(BENT * slack, OUTSIDE)
        if is_outside:
            self.touches.append(touch)
        if is_bent:
            self.near.append(relaxed.logits(point)[1])
        return is_outside or is_bent

    def lean(self, relaxed: Relaxed, y: Array, point: Array, slack: float) -> bool:
        """Draw planes of curved neurons where a point is outside of them, and drop idle ones; tell whether any were."""
        network, template = self.problem.network, relaxed.template
        if self.run.done or not can_lean(network):
            return False
        if self.sampled is None or self.sampled[0] is not self.bounds:
            self.sampled = (self.bounds, facets(network, self.bounds.layers))
        left, right, drawn = template.left, template.right, []
        for (k, j), some in self.sampled[1].items():
            z, dz = point[right.z[k][j]], point[left.z[k][j]] - point[right.z[k][j]]
            dv = point[left.v[k][j]] - point[right.v[k][j]]
            drawn += [Plane(k, j, *how, 0.0) for how in some.lowest(dz, z, dv, LEANING * max(slack, OUTSIDE))]
        kept = [plane for plane, times in zip(relaxed.planes, y[relaxed.planed], strict=True) if times > 0.0]
        self.planes = kept + placed(network, self.bounds.layers, drawn)
        return bool(drawn)

    @property
    def is_round(self) -> bool:
        """Whether linear programs know the ball as it is, so that none of its tangents are drawn."""
        return is_round(self.problem, self.bounds)

    @property
    def is_blind(self) -> bool:
        """Whether the metric sees more of a difference than a model does: then a point's own is not to be taken."""
        free = int((~self.bounds.reach.shared).sum())
        sees_less = len(self.problem.network.layers[0].bias) < free
        return self.problem.metric.p == 2.0 and not self.problem.aside and sees_less and not self.is_round

    def people(self, relaxed: Relaxed, point: Array) -> tuple[Array, Array]:
        """Return the two people of a model's point, the most similar ones where it leaves that open.

        If even these are not similar, a tangent of the ball there is what rules out all that look like them.
        """
        template = relaxed.template
        left, right = point[template.left.x], point[template.right.x]
        if not self.is_blind:
            return left, right
        left, right = most_alike(self.problem, left, right)
        differences = template.compared[0]
        over, touch = excess(differences, (left - right)[differences.free])
        if over > OUTSIDE:
            self.touches.append(touch)
        free, matrix = differences.free, differences.metric.matrix[:, differences.free]
        lower, upper = (end[free] - right[free] for end in (self.problem.left.lower, self.problem.left.upper))
        d = brought_in((left - right)[None, free], matrix, differences.metric.p, differences.eps, lower, upper)[0]
        left[free] = right[free] + d
        return left, right

    def dive(self, part: Bounded) -> None:
        """Look for a pair below a part: follow its point down, and polish what is found there."""
        deadline = time.monotonic() + min(DIVE, 0.1 * self.run.seconds_left)

        def one(half: Half, parent: Bounded) -> Bounded:
            return bound(parent.relaxed, self.bounds.reach, [(half, parent)])[0][0]

        self.polish(dive(part, self.influence, one, deadline))

    def polish(self, part: Bounded) -> None:
        """Make the point of a part a real pair, and climb from there if it is better than the best or not alone."""
        exact = repaired(self.outer, self.bounds.reach, *self.people(part.relaxed, part.point))
        if exact is not None and (self.run.offer(*exact) or not self.is_blind):
            seconds = min(CLIMB, 0.05 * self.run.seconds_left)
            polish(self.outer, self.problem, self.score, self.bounds.reach, self.run, exact, seconds)

    def match(self, part: Bounded) -> None:
        """Look for a pair on the pieces that a part's point is on, whatever its categories, and polish it."""
        end = time.monotonic() + min(MATCH, 0.02 * self.run.seconds_left)
        rng = np.random.default_rng(self.matches)
        self.matches += 1
        seen: list[Array] = []
        for left, right in matched(part, self.bounds.reach, self.people(part.relaxed, part.point), rng, end):
            exact = repaired(self.outer, self.bounds.reach, left, right)
            if exact is None or any(np.array_equal(exact[1], one) for one in seen):
                continue
            seen.append(exact[1])
            self.run.offer(*exact)
            polish(self.outer, self.problem, self.score, self.bounds.reach, self.run, exact, MATCH / MATCHES)
            if len(seen) == MATCHES or self.run.done:
                break

    def hear(self) -> None:
        """Take the pairs that a scout has found, and tell it of a better one."""
        if self.scout is None:
            return
        for pair in self.scout.found():
            self.run.offer(*pair)
            self.told = max(self.told, self.run.lower)
        if self.run.lower > self.told:
            self.told = self.run.lower
            self.scout.tell(self.run.pair())

    def send(self) -> Scout:
        """Send out a scout."""
        self.told = self.run.lower
        sides = (self.outer, self.problem, self.score, self.bounds.reach)
        self.scout = Scout(Order(*sides, self.run.seconds_left, self.run.gap, self.run.pair()))
        return self.scout

    def look(self, seconds: float) -> None:
        """Look for better pairs."""
        if self.primal is None:
            self.primal = Primal(self.outer, self.problem, self.score, self.bounds.reach, self.run)
        self.primal.look(seconds)

    def telling(
        self,
        node: int,
        model: Relaxed | Template,
        bounds: TwinBounds | None = None,
        told: list[Told] | None = None,
    ) -> Tell:
        """Return what writes lemmas of a model, filled with `bounds` (the root's if None), to a node of the proof.

        And to a list, if there is one.
        """
        template = model.template if isinstance(model, Relaxed) else model
        lines = template.lines((bounds or self.bounds).layers)
        argued = model.argued if isinstance(model, Relaxed) else model.argument

        def tell(lemma: Lemma) -> None:
            argument = argued(lemma.proof.multipliers, lines, lemma.proof.mu)
            self.log.lemma(node, lemma.layer, lemma.neuron, lemma.kind, lemma.sign, argument)
            if told is not None:
                told.append((lemma, argument))

        return tell


def open_count(bounds: TwinBounds) -> int:
    """Count the neurons whose phase is open."""
    return sum(int(open_neurons(b).sum()) for b in bounds.layers)

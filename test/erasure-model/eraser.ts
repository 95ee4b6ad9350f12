import { putConsent } from './gateway.ts';
import { type Cutoffs, componentOf, idsOf, joinAll, type RequestedErasure, withoutIds } from './people.ts';
import type { Step } from './program.ts';
import {
  type Eraser,
  type Erasure,
  IDLE,
  type Move,
  merge,
  type Rules,
  type State,
  type Topic,
  updateAt,
} from './state.ts';

/**
 * Topics that a step waits for. The eraser reads their end offsets when the step starts and continues once all earlier
 * records are committed.
 */
const AWAITED: Readonly<Partial<Record<Step, readonly Topic[]>>> = {
  'wait for the linker': ['links'],
  'wait for the linker a second time': ['links'],
  'wait for the decisions': ['decisions'],
  'wait for the linker after the hold': ['links'],
  'wait for the writer': ['events', 'decisions', 'consents'],
};

/** Possible moves: an eraser runs its next step, another eraser starts, or the first eraser ends. */
export function erase(rules: Rules, state: State): Move[] {
  const moves = state.erasers.flatMap((_, number) => new EraserMoves(rules, state, number).moves());
  const isStarted = (state.erasers[0] as Eraser).at > 0;
  if (isStarted && rules.mayHappen(state, 'second eraser')) {
    const mishaps = [...state.mishaps, 'second eraser' as const];
    moves.push(['another eraser starts', { erasers: [...state.erasers, IDLE], mishaps }]);
  }
  if (isStarted && state.erasers.length > 1)
    moves.push(['the first eraser ends', { erasers: updateAt(state.erasers, 0, { ...IDLE, at: -1 }) }]);
  return moves;
}

class EraserMoves {
  readonly #rules: Rules;
  readonly #state: State;
  readonly #number: number;
  readonly #eraser: Eraser;

  constructor(rules: Rules, state: State, number: number) {
    this.#rules = rules;
    this.#state = state;
    this.#number = number;
    this.#eraser = state.erasers[number] as Eraser;
  }

  moves(): Move[] {
    const step = this.#rules.program[this.#eraser.at];
    if (step === undefined) return [];
    const changes = this.#isOmitted(step) ? [this.#advance()] : this.#run(step);
    return changes.map((change) => [`eraser ${this.#number}: ${step}`, change]);
  }

  #isOmitted(step: Step): boolean {
    const { has } = this.#rules;
    if (step === 'wait for the linker a second time' && !has('wait for the linker')) return true;
    if (step === 'wait for the decisions' && !has('read the ends of decisions after the linker has caught up'))
      return true;
    return !has(step);
  }

  #run(step: Step): Partial<State>[] {
    const topics = AWAITED[step];
    if (topics !== undefined) return this.#await(step, topics);
    const { found } = this.#eraser;
    switch (step) {
      case 'read the requests':
        return this.#readRequests();
      case 'wait until all links up to T are published':
        return this.#areLinksPublished() ? [this.#advance()] : [];
      case 'resolve':
        return [this.#advance({}, { found: this.#resolve() })];
      case 'hold the whole closure':
        return [this.#hold()];
      case 'store the closure':
        return [this.#advance(this.#updateBatch({ closure: found }))];
      case 'fence':
        return [this.#advance({ fences: merge(this.#state.fences, found) })];
      case 'forget':
        return [this.#forget()];
      case 'restore later data':
        return [this.#advance(this.#restore())];
      case 'delete decisions':
      case 'delete other rows':
        return this.#delete(step);
      case 'verify and repeat the deletes':
        return [
          this.#state.rows.some((offset) => this.#rules.covers(found, offset))
            ? this.#jumpTo('delete decisions')
            : this.#advance(),
        ];
      case 'write the receipt':
        return [this.#advance(this.#updateBatch({ hasReceipt: true }))];
      default:
        return [this.#goTo(IDLE, this.#updateBatch({ held: null }))];
    }
  }

  /** Starts a batch with all open erasures. If an erasure already has a receipt, only its hold must be released. */
  #readRequests(): Partial<State>[] {
    const { erasures } = this.#state;
    const open = [...erasures.keys()].filter((each) => {
      const { requested, hasReceipt, held } = erasures[each] as Erasure;
      return requested && !(hasReceipt && held === null);
    });
    if (open.length === 0) return [];
    const done = open.filter((each) => erasures[each]?.hasReceipt);
    if (done.length > 0) return [this.#jumpTo('release the hold', { batch: done })];
    if (!this.#rules.has('hold the subject when its request is read')) return [this.#advance({}, { batch: open })];
    const held = erasures.map((erasure, each) => {
      const subject = [this.#requestOf(each).subject];
      return open.includes(each) ? { ...erasure, held: erasure.held ?? subject } : erasure;
    });
    return [this.#advance({ erasures: held }, { batch: open })];
  }

  /** Whether all links up to T are published. A gateway publishes a link within a known time or never. */
  #areLinksPublished(): boolean {
    const { log } = this.#rules;
    return log.offsetsOf('link').every((offset) => offset < this.#state.sent || log.atOf(offset) > this.#cutoff());
  }

  // Finds the person as of the latest cut-off, from stored decisions and the closures of overlapping erasures. In this
  // model, all erasures are for one person.
  #resolve(): Cutoffs {
    const { log, has } = this.#rules;
    const { rows, graph, erasures } = this.#state;
    const decisions = rows.filter((offset) => log.isLink(offset) && log.atOf(offset) <= this.#cutoff());
    const known = has('resolve by decisions not later than T') ? log.graphOf(decisions) : graph;
    const others = has('adopt the closure of an overlapping erasure') ? erasures : [];
    const closures = others.flatMap(({ closure }) => (closure === null ? [] : [idsOf(closure)]));
    const joined = closures.reduce(joinAll, known);
    const ids = this.#eraser.batch.flatMap((each) => componentOf(joined, this.#requestOf(each).subject));
    return merge({}, Object.fromEntries(ids.map((id) => [id, this.#cutoff()])));
  }

  // Extends the hold to the whole closure. If an earlier erasure's hold may have delayed a link up to the later
  // cut-off, the eraser repeats the resolution.
  #hold(): Partial<State> {
    const { has } = this.#rules;
    const ids = idsOf(this.#eraser.found);
    if (!this.#isHeld() && has('extend the hold only while it exists')) return this.#goTo(IDLE);
    const held = this.#updateBatch({ held: ids });
    const mayGrow = this.#eraser.batch.length > 1 && this.#eraser.held.join() !== ids.join();
    if (!mayGrow || !has('repeat the resolution after erasures are merged')) return this.#advance(held);
    return this.#jumpTo('wait for the linker', { held: ids }, held);
  }

  /** Removes the ids from the graph, including later links. Consents have a timestamp, so later consents are kept. */
  #forget(): Partial<State> {
    const { has, covers, log } = this.#rules;
    const { graph, choices } = this.#state;
    const { found } = this.#eraser;
    if (!this.#isHeld() && has('forget only while the hold exists')) return this.#goTo(IDLE);
    const isForgotten = (offset: number) =>
      has('forget no later consent') ? covers(found, offset) : log.idsOf(offset).some((id) => id in found);
    const kept = choices.filter((offset) => !isForgotten(offset));
    return this.#advance({ graph: withoutIds(graph, idsOf(found)), choices: kept });
  }

  /** Restores data later than the cut-off: republishes links and writes consents to Redis. */
  #restore(): Partial<State> {
    const { has, log, covers } = this.#rules;
    const { rows, topics } = this.#state;
    const { found } = this.#eraser;
    const later = rows.filter((offset) => !covers(found, offset) && log.idsOf(offset).some((id) => id in found));
    const links = later.filter((offset) => log.isLink(offset) && !topics.links.includes(offset));
    const consents = later.filter((offset) => log.isConsent(offset));
    let { choices } = this.#state;
    for (const offset of has('restore later consents') ? consents : [])
      choices = putConsent(this.#rules, { ...this.#state, choices }, offset);
    return { choices, topics: has('restore later links') ? { ...topics, links: [...topics.links, ...links] } : topics };
  }

  /** Deletes decisions and other rows in two steps because an eraser may end between the steps. */
  #delete(step: 'delete decisions' | 'delete other rows'): Partial<State>[] {
    const { log, covers, mayHappen } = this.#rules;
    const { rows, mishaps, revived } = this.#state;
    const { found } = this.#eraser;
    const isInTable = (offset: number) => log.isLink(offset) === (step === 'delete decisions');
    const kept = rows.filter((offset) => !isInTable(offset) || !covers(found, offset));
    const moves = [this.#advance({ rows: kept, revived: revived.filter((offset) => kept.includes(offset)) })];
    if (!mayHappen(this.#state, 'delete fails')) return moves;
    return [...moves, this.#advance({ mishaps: [...mishaps, 'delete fails'] })];
  }

  /** Reads the end offsets of the topics, then waits until all earlier records are committed. */
  #await(step: Step, topics: readonly Topic[]): Partial<State>[] {
    const { awaited } = this.#eraser;
    if (awaited !== null) return Object.values(awaited).some((count) => count > 0) ? [] : [this.#advance()];
    const isTooEarly = !this.#rules.has('read the ends of decisions after the linker has caught up');
    const names: readonly Topic[] = isTooEarly && step === 'wait for the linker' ? [...topics, 'decisions'] : topics;
    return [this.#goTo({ awaited: Object.fromEntries(names.map((each) => [each, this.#state.topics[each].length])) })];
  }

  /** False if another eraser has finished or Redis has lost the hold. */
  #isHeld(): boolean {
    return this.#batch().every(({ held }) => held !== null);
  }

  #cutoff(): number {
    return Math.max(...this.#eraser.batch.map((each) => this.#requestOf(each).cutoff));
  }

  #requestOf(erasure: number): RequestedErasure {
    return this.#rules.log.requests[erasure] as RequestedErasure;
  }

  #batch(): Erasure[] {
    return this.#eraser.batch.map((each) => this.#state.erasures[each] as Erasure);
  }

  #updateBatch(change: Partial<Erasure>): Partial<State> {
    const { batch } = this.#eraser;
    const { erasures } = this.#state;
    return { erasures: erasures.map((each, number) => (batch.includes(number) ? { ...each, ...change } : each)) };
  }

  #advance(change: Partial<State> = {}, eraser: Partial<Eraser> = {}): Partial<State> {
    return this.#goTo({ ...eraser, at: this.#eraser.at + 1, awaited: null }, change);
  }

  #jumpTo(step: Step, eraser: Partial<Eraser> = {}, change: Partial<State> = {}): Partial<State> {
    return this.#goTo({ ...eraser, at: this.#rules.program.indexOf(step) }, change);
  }

  #goTo(eraser: Partial<Eraser>, change: Partial<State> = {}): Partial<State> {
    return { ...change, erasers: updateAt(this.#state.erasers, this.#number, eraser) };
  }
}

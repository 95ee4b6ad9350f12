/**
 * The protocol of an erasure as a system of small steps: a gateway takes what clients send, a writer and a linker read
 * it, and an eraser erases `s` as of the time T at which the gateway took the request. Any of them may be interrupted
 * between any two of its steps by any of the others.
 *
 * What must hold:
 * - from the receipt on nothing of the person that was accepted by T is there, but what a zombie writer has brought back
 *   since it was last deleted, and that is gone in the end;
 * - whatever came later than T, and whatever is the stranger's, is there in the end.
 */
import {
  componentOf,
  EVENTS,
  type Id,
  idsOf,
  isByT,
  LINKS,
  leftIn,
  lostFrom,
  ownerOf,
  REQUEST_AT,
  SENT,
} from './people.ts';
import type { System } from './search.ts';

/** What the protocol is made of; each part may be left out, to see what it is there for. */
export const PARTS = [
  'hold the subject from the request on',
  'wait for the linker',
  'fence before anything is deleted',
  'wait for the writer',
  'delete from the graph',
  'delete rows',
  'verify, and delete again',
  'release the hold',
  'scrub while the fence lives',
  'fence nothing that is later than T',
  'refuse links by T that touch a fenced id',
  'stop a writer that has not loaded the fences',
] as const;
export type Part = (typeof PARTS)[number];

/** What the eraser does, one after the other. */
export const PROGRAM = [
  'wait for the linker',
  'resolve',
  'fence before anything is deleted',
  'wait for the writer',
  'delete from the graph',
  'delete rows',
  'verify, and delete again',
  'write the receipt',
  'release the hold',
] as const;
export type Step = (typeof PROGRAM)[number];

export interface Variant {
  readonly without?: readonly Part[];
  /** Another order of the eraser's steps. */
  readonly program?: readonly Step[];
  /** Another writer takes over while the first is paused between its look at the fences and its insert; it goes on later. */
  readonly zombie?: boolean;
  /** The delete may end without having deleted anything, once. */
  readonly deleteFails?: boolean;
  /** Everything in the log is read a second time, from any moment on. */
  readonly replay?: boolean;
}

/** Numbers of events and links are places in `SENT`. */
interface State {
  /** How much of what is sent has been taken. */
  sent: number;
  /** Events committed, and the one in the writer's hand: judged by the fences, perhaps inserted. */
  written: number;
  hand: { readonly event: number; readonly keep: boolean; readonly inserted: boolean } | null;
  /** Whether the present writer knows the fences. */
  loaded: boolean;
  /** The event that a paused writer will insert whatever has happened since; null when there is none (any more). */
  zombie: number | null;
  /** What it has inserted and nobody has deleted since. */
  revived: readonly number[];
  tookOver: boolean;
  replayed: boolean;
  rows: readonly number[];
  /** Links committed, whether the next is applied already, those that wait for the release, and the graph. */
  linked: number;
  applied: boolean;
  parked: readonly number[];
  graph: readonly number[];
  /** The eraser: where in its program, up to how many records it waits, whom it found. */
  at: number;
  waitsFor: number | null;
  found: readonly Id[];
  fenced: readonly Id[];
  held: readonly Id[];
  failed: boolean;
  scrubbed: boolean;
}

const START: State = {
  ...{ sent: 0, written: 0, hand: null, loaded: true, zombie: null, revived: [], tookOver: false },
  ...{ replayed: false, rows: [] },
  ...{ linked: 0, applied: false, parked: [], graph: [], at: 0, waitsFor: null, found: [], fenced: [], held: [] },
  ...{ failed: false, scrubbed: false },
};

type Change = Partial<State>;

/** The protocol, with whatever the variant leaves out. */
export class Protocol implements System<State> {
  readonly start = START;
  readonly #variant: Variant;
  readonly #program: readonly Step[];

  constructor(variant: Variant) {
    this.#variant = variant;
    this.#program = variant.program ?? PROGRAM;
  }

  next(state: State): State[] {
    const { zombie, replay } = this.#variant;
    const changes = [
      ...this.#send(state),
      ...this.#write(state),
      ...this.#link(state),
      ...this.#erase(state),
      ...this.#scrub(state),
      ...(zombie ? this.#takeOver(state) : []),
      ...(replay ? this.#readAgain(state) : []),
    ];
    return changes.map((change) => ({ ...state, ...change }));
  }

  faultOf({ at, rows, graph, revived }: State): string | null {
    if (at <= this.#program.indexOf('write the receipt')) return null;
    return leftIn(
      rows.filter((place) => !revived.includes(place)),
      graph,
    );
  }

  faultAtEnd({ rows, graph }: State): string | null {
    return leftIn(rows, graph) ?? lostFrom(rows, graph);
  }

  #has(part: Part): boolean {
    return !this.#variant.without?.includes(part);
  }

  /** Whether ids that are erased cover what stands at this place. */
  #covers(erased: readonly Id[], id: Id, place: number): boolean {
    return erased.includes(id) && (isByT(place) || !this.#has('fence nothing that is later than T'));
  }

  #send({ sent, graph }: State): Change[] {
    if (sent === SENT.length) return [];
    const holds = sent === REQUEST_AT && this.#has('hold the subject from the request on');
    return [{ sent: sent + 1, ...(holds && { held: componentOf(graph, 's') }) }];
  }

  #write(state: State): Change[] {
    const { hand, loaded, written, rows } = state;
    const changes: Change[] = loaded ? [] : [{ loaded: true }];
    const event = EVENTS[written];
    if (hand === null) {
      const mayJudge = loaded || !this.#has('stop a writer that has not loaded the fences');
      if (event === undefined || event >= state.sent || !mayJudge) return changes;
      const keep = !(loaded && this.#covers(state.fenced, ownerOf(event), event));
      return [...changes, { hand: { event, keep, inserted: false } }];
    }
    if (hand.keep && !hand.inserted)
      return [...changes, { rows: withPlace(rows, hand.event), hand: { ...hand, inserted: true } }];
    return [...changes, { written: written + 1, hand: null }];
  }

  /** The paused writer keeps what it has judged; the other begins at what is committed, without fences. */
  #takeOver({ hand, zombie, tookOver, rows }: State): Change[] {
    const changes: Change[] =
      zombie === null ? [] : [{ rows: withPlace(rows, zombie), revived: [zombie], zombie: null }];
    if (tookOver || hand === null || !hand.keep || hand.inserted) return changes;
    return [...changes, { zombie: hand.event, hand: null, tookOver: true, loaded: false }];
  }

  #readAgain({ replayed, hand, applied }: State): Change[] {
    return replayed || hand !== null || applied ? [] : [{ replayed: true, written: 0, linked: 0, loaded: false }];
  }

  #link(state: State): Change[] {
    const place = LINKS[state.linked];
    if (place === undefined || place >= state.sent) return [];
    if (state.applied) return [{ linked: state.linked + 1, applied: false }];
    return [{ ...this.#apply(state, place), applied: true }];
  }

  /** One script: it looks at holds and fences and changes the graph in one step. */
  #apply({ graph, held, parked, fenced }: Pick<State, 'graph' | 'held' | 'parked' | 'fenced'>, place: number): Change {
    const touched = idsOf(place).flatMap((id) => componentOf(graph, id));
    if (!isByT(place) && touched.some((id) => held.includes(id))) return { parked: withPlace(parked, place) };
    const isRefused = idsOf(place).some((id) => this.#covers(fenced, id, place));
    if (isRefused && this.#has('refuse links by T that touch a fenced id')) return {};
    return { graph: withPlace(graph, place) };
  }

  #erase(state: State): Change[] {
    const step = this.#program[state.at];
    if (step === undefined || state.sent <= REQUEST_AT) return [];
    const passed = { at: state.at + 1, waitsFor: null };
    if (step === 'resolve') return [{ ...passed, found: componentOf(state.graph, 's') }];
    if (step === 'write the receipt' || !this.#has(step)) return [passed];
    if (step === 'wait for the linker') return waitFor(state, { places: LINKS, committed: state.linked });
    if (step === 'wait for the writer') return waitFor(state, { places: EVENTS, committed: state.written });
    if (step === 'fence before anything is deleted') return [{ ...passed, fenced: state.found }];
    if (step === 'release the hold') return [{ ...passed, ...this.#release(state) }];
    if (step === 'delete from the graph') {
      const isErased = (place: number) => idsOf(place).some((id) => this.#covers(state.found, id, place));
      return [{ ...passed, graph: state.graph.filter((place) => !isErased(place)) }];
    }
    const isErased = (place: number) => this.#covers(state.found, ownerOf(place), place);
    if (step === 'verify, and delete again')
      return [state.rows.some(isErased) ? { at: this.#program.indexOf('delete rows') } : passed];
    const fails = this.#variant.deleteFails && !state.failed;
    const rows = state.rows.filter((place) => !isErased(place));
    return [{ ...passed, rows, revived: [] }, ...(fails ? [{ ...passed, failed: true }] : [])];
  }

  /** Parked links are applied as if they came now. */
  #release({ parked, graph, fenced }: State): Change {
    const released = { held: [], parked: [], graph, fenced };
    for (const place of parked) Object.assign(released, this.#apply(released, place));
    return { held: [], parked: [], graph: released.graph };
  }

  /** Daily, and so once behind whatever else happens. It goes by the fences: they are what is known then. */
  #scrub(state: State): Change[] {
    const isErased = state.at === this.#program.length && state.sent === SENT.length && state.zombie === null;
    const isIdle = state.hand === null && state.written === EVENTS.length && state.linked === LINKS.length;
    if (!this.#has('scrub while the fence lives') || !isErased || !isIdle || state.scrubbed) return [];
    const rows = state.rows.filter((place) => !this.#covers(state.fenced, ownerOf(place), place));
    return [{ rows, revived: [], scrubbed: true }];
  }
}

/** Notes where the topic ends, then goes on when its consumer has committed up to there. */
function waitFor({ at, sent, waitsFor }: State, topic: { places: readonly number[]; committed: number }): Change[] {
  if (waitsFor === null) return [{ waitsFor: topic.places.filter((place) => place < sent).length }];
  return topic.committed >= waitsFor ? [{ at: at + 1, waitsFor: null }] : [];
}

/** In one order, so that states that hold the same are one. */
function withPlace(places: readonly number[], place: number): number[] {
  return [...new Set([...places, place])].sort((one, other) => one - other);
}

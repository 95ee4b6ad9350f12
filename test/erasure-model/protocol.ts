import { erase } from './eraser.ts';
import { accept } from './gateway.ts';
import { link } from './linker.ts';
import { type Cutoffs, findMissing, findRemaining, Log } from './people.ts';
import { type Part, PROGRAM, type Step } from './program.ts';
import type { NamedState, System } from './search.ts';
import { type Mishap, type Rules, type State, startOf, type Variant } from './state.ts';
import { scrub, takeOver, write } from './writer.ts';

/**
 * Models the erasure protocol as atomic steps of concurrent actors: gateways, the linker, the writer, and one or two
 * erasers that run a program (`program.ts`). A world (`worlds.ts`) defines the log and what goes wrong. With T as the
 * cut-off, every world must satisfy two properties:
 * - After the receipt, no data up to T remains of the person, which consists of all ids linked with the subject up to
 * T, except rows that a paused writer inserts later. At the end, these rows are also deleted.
 * - All data later than T, and all data of strangers, exists at the end.
 *
 * Simplifications: all actors know new fences immediately. There is one environment and one partition per topic. The
 * linker refuses links only because of fences. A batch contains one person. Redis loses only holds. Each world has only
 * one kind of mishap.
 */
export class Protocol implements System<State>, Rules {
  readonly start: State;
  readonly log: Log;
  readonly program: readonly Step[];
  readonly #variant: Variant;

  constructor(variant: Variant) {
    this.#variant = variant;
    this.start = startOf(variant.world);
    this.log = new Log(variant.world);
    this.program = variant.program ?? PROGRAM;
  }

  next(state: State): NamedState<State>[] {
    const actors = [accept, write, link, erase, scrub, takeOver, rereadLog];
    return actors.flatMap((moves) => moves(this, state)).map(([step, change]) => [step, { ...state, ...change }]);
  }

  faultOf({ rows, graph, choices, revived, erasures }: State): string | null {
    const done = erasures.flatMap(({ hasReceipt }, erasure) => (hasReceipt ? [erasure] : []));
    return findRemaining(this.log, done, { rows: rows.filter((offset) => !revived.includes(offset)), graph, choices });
  }

  faultAtEnd(state: State): string | null {
    const requested = state.erasures.flatMap((each, erasure) => (each.requested ? [erasure] : []));
    return findRemaining(this.log, requested, state) ?? findMissing(this.log, requested, state);
  }

  has = (part: Part | Step): boolean => this.#variant.omitted !== part;

  covers = (erased: Cutoffs, offset: number): boolean =>
    this.has('fence nothing later than T')
      ? this.log.isCoveredBy(erased, offset)
      : this.log.idsOf(offset).some((id) => id in erased);

  mayHappen = ({ mishaps }: State, mishap: Mishap): boolean =>
    this.#variant.world.mishaps?.includes(mishap) === true && !mishaps.includes(mishap);
}

/** Rereads all events and links from the start of the log. */
function rereadLog(rules: Rules, state: State) {
  const { inFlight, decided, topics, mishaps } = state;
  if (!rules.mayHappen(state, 'replay') || inFlight.events !== null || inFlight.decisions !== null || decided !== null)
    return [];
  const sent = (kind: 'event' | 'link') => rules.log.offsetsOf(kind).filter((offset) => offset < state.sent);
  const links = sent('link');
  const read = { events: sent('event'), links, decisions: links.filter((offset) => !topics.links.includes(offset)) };
  const erasers = state.erasers.map((eraser) => {
    const awaited: Record<string, number> = { ...eraser.awaited };
    for (const topic of ['events', 'links', 'decisions'] as const)
      if (topic in awaited) awaited[topic]! += read[topic].length - topics[topic].length;
    return { ...eraser, awaited: eraser.awaited && awaited };
  });
  const change = { topics: { ...topics, ...read }, erasers, loaded: false, mishaps: [...mishaps, 'replay' as const] };
  return [['the whole log is reread', change] as const];
}

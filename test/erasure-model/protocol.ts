import { erase } from './eraser.ts';
import { accept } from './gateway.ts';
import { link } from './linker.ts';
import { type Cutoffs, findMissing, findRemaining, Log } from './people.ts';
import { type Part, PROGRAM, type Step } from './program.ts';
import type { Named, System } from './search.ts';
import { type Mishap, type Rules, type State, startOf, type Variant } from './state.ts';
import { scrub, takeOver, write } from './writer.ts';

/**
 * The erasure protocol as a system of small steps, in which any actor may interrupt any other: gateways, the linker,
 * the writer, and one or two erasers that follow a program (`program.ts`). A world (`worlds.ts`) defines what is sent,
 * in the order of the log, and what goes wrong. With T as the erasure's cut-off, each world must satisfy two
 * properties:
 * - After the receipt, no data of the person (all ids that links up to T join with the subject) accepted up to T
 * remains,   except rows that a paused writer inserts later. Those rows are gone at the end.
 * - All data later than T, and all data of strangers, exists at the end.
 *
 * Simplifications: all actors know new fences immediately; there is one environment, and one partition per topic; only
 * a fence makes the linker refuse a link; a batch is about one person; Redis loses only holds; one thing goes wrong at
 * a time.
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

  next(state: State): Named<State>[] {
    const actors = [accept, write, link, erase, scrub, takeOver, readAgain];
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

  has = (part: Part | Step): boolean => this.#variant.without !== part;

  covers = (erased: Cutoffs, offset: number): boolean =>
    this.has('fence nothing later than T')
      ? this.log.isCoveredBy(erased, offset)
      : this.log.idsOf(offset).some((id) => id in erased);

  mayHappen = ({ happened }: State, mishap: Mishap): boolean =>
    this.#variant.world.mishaps?.includes(mishap) === true && !happened.includes(mishap);
}

/** Rereads all events and links of the log from the beginning. */
function readAgain(rules: Rules, state: State) {
  const { inFlight, decided, topics, happened } = state;
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
  const change = { topics: { ...topics, ...read }, erasers, loaded: false, happened: [...happened, 'replay' as const] };
  return [['everything is read again', change] as const];
}

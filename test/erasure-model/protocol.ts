import { erase } from './eraser.ts';
import { take } from './gateway.ts';
import { link } from './linker.ts';
import { type Cutoffs, Log, leftIn, lostFrom } from './people.ts';
import { type Part, PROGRAM, type Step } from './program.ts';
import type { Named, System } from './search.ts';
import { type Mishap, type Rules, type State, startOf, type Variant } from './state.ts';
import { scrub, takeOver, write } from './writer.ts';

/**
 * The erasure protocol as a system of small steps. Any actor may be interrupted between any two of its steps by any
 * other:
 * - Gateways accept messages, hold the subject of an erasure, publish its request, and put consents into Redis.
 * - The linker decides links in the order of their topic, parks those that a hold delays, and publishes decisions.
 * - The writer writes rows of events, decisions and consents.
 * - One or two erasers follow a program (`program.ts`). Each may end at any moment; what it has stored stays.
 *
 * A world (`worlds.ts`) defines what is sent, in the order of the log, and what goes wrong. The log is not in order of
 * time. There are many small worlds instead of one large one. Each has only the actors that it needs.
 *
 * In each world this must hold, where T is the cut-off of the erasure:
 * - After the receipt, nothing of the person is left that was accepted up to T. The person is all ids that links up to
 *   T join with the subject. One exception: a writer that was believed dead may insert rows again after they were
 *   deleted. Those rows are gone at the end.
 * - Everything later than T, and everything of strangers, exists at the end.
 *
 * The model is simpler than the system. All actors know new fences immediately. There is one environment, and each topic
 * has one partition. The linker waits for a parked link until it goes back to the end of the topic. Only a fence makes
 * the linker refuse a link. A batch is about one person. An eraser reads a request, checks that it has no receipt and
 * holds the subject in one step. Redis loses only holds.
 *
 * One thing goes wrong at a time. So the model does not cover a hold that is lost while two erasers run: each would
 * rely on the hold that the other has created again.
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
    const actors = [take, write, link, erase, scrub, takeOver, readAgain];
    return actors.flatMap((moves) => moves(this, state)).map(([step, change]) => [step, { ...state, ...change }]);
  }

  faultOf({ rows, graph, choices, revived, erasures }: State): string | null {
    const done = erasures.flatMap(({ hasReceipt }, erasure) => (hasReceipt ? [erasure] : []));
    return leftIn(this.log, done, { rows: rows.filter((offset) => !revived.includes(offset)), graph, choices });
  }

  faultAtEnd(state: State): string | null {
    const requested = state.erasures.flatMap((each, erasure) => (each.requested ? [erasure] : []));
    return leftIn(this.log, requested, state) ?? lostFrom(this.log, requested, state);
  }

  has = (part: Part | Step): boolean => this.#variant.without !== part;

  covers = (erased: Cutoffs, offset: number): boolean =>
    this.has('fence nothing that is later than T')
      ? this.log.isBy(erased, offset)
      : this.log.idsOf(offset).some((id) => id in erased);

  mayHappen = ({ happened }: State, mishap: Mishap): boolean =>
    this.#variant.world.mishaps?.includes(mishap) === true && !happened.includes(mishap);
}

/** Reads all events and links of the log again, from the first one on. */
function readAgain(rules: Rules, state: State) {
  const { hands, decided, topics, happened } = state;
  if (!rules.mayHappen(state, 'replay') || hands.events !== null || hands.decisions !== null || decided !== null)
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

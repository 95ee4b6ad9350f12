import { erase } from './eraser.ts';
import { take } from './gateway.ts';
import { link } from './linker.ts';
import { type Cutoffs, Log, leftIn, lostFrom } from './people.ts';
import { type Part, PROGRAM, type Step } from './program.ts';
import type { Named, System } from './search.ts';
import { type Mishap, type Rules, type State, startOf, type Variant } from './state.ts';
import { scrub, takeOver, write } from './writer.ts';

/**
 * The protocol of an erasure as a system of small steps. Any actor may be interrupted between any two of its steps by any
 * other:
 * - gateways take what clients send, hold the subject of an erasure, publish its request, put consents into Redis;
 * - the linker decides links in the order of their topic, parks those that a hold keeps back, publishes decisions;
 * - the writer writes rows of events, decisions and consents;
 * - erasers, one or two, follow a program (`program.ts`) and may end at any moment; what they have stored stays.
 *
 * A world (`worlds.ts`) says what is sent, in the order of the log, which is not that of time, and what goes wrong. There
 * are many small worlds instead of one that has everything: each has the actors that its question needs.
 *
 * What must hold in each of them:
 * - from its receipt on nothing is left of what an erasure is about: of all who are one person with its subject by links
 *   that were accepted by its T, what was accepted by T (except rows that a writer which was believed
 *   dead has brought back since they were last deleted: those are gone in the end);
 * - whatever came later than T, and whatever is a stranger's, is there in the end.
 *
 * Simpler than what it stands for: everybody knows fences at once; one environment, one partition a topic; a link that is
 * parked keeps the linker waiting until it is sent round; links are refused for no other reason than a fence; a batch is
 * about one person; a request is read, found without a receipt and held in one step; Redis loses holds and nothing else.
 * One thing goes wrong at a time: a hold that is lost while two erasers run is not covered, since each goes on under the
 * hold that the other has placed anew.
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
    return actors.flatMap((moves) => moves(this, state)).map(([words, change]) => [words, { ...state, ...change }]);
  }

  faultOf({ rows, graph, choices, revived, erasures }: State): string | null {
    const done = erasures.flatMap(({ hasReceipt }, erasure) => (hasReceipt ? [erasure] : []));
    return leftIn(this.log, done, { rows: rows.filter((place) => !revived.includes(place)), graph, choices });
  }

  faultAtEnd(state: State): string | null {
    const asked = state.erasures.flatMap(({ asked }, erasure) => (asked ? [erasure] : []));
    return leftIn(this.log, asked, state) ?? lostFrom(this.log, asked, state);
  }

  has = (part: Part | Step): boolean => this.#variant.without !== part;

  covers = (erased: Cutoffs, place: number): boolean =>
    this.has('fence nothing that is later than T')
      ? this.log.isBy(erased, place)
      : this.log.idsOf(place).some((id) => id in erased);

  mayHappen = ({ happened }: State, mishap: Mishap): boolean =>
    this.#variant.world.mishaps?.includes(mishap) === true && !happened.includes(mishap);
}

/** Events and links from the first one on. */
function readAgain(rules: Rules, state: State) {
  const { hands, decided, topics, happened } = state;
  if (!rules.mayHappen(state, 'replay') || hands.events !== null || hands.decisions !== null || decided !== null)
    return [];
  const sent = (kind: 'event' | 'link') => rules.log.placesOf(kind).filter((place) => place < state.sent);
  const links = sent('link');
  const read = { events: sent('event'), links, decisions: links.filter((place) => !topics.links.includes(place)) };
  const erasers = state.erasers.map((eraser) => {
    const awaited: Record<string, number> = { ...eraser.awaited };
    for (const topic of ['events', 'links', 'decisions'] as const)
      if (topic in awaited) awaited[topic]! += read[topic].length - topics[topic].length;
    return { ...eraser, awaited: eraser.awaited && awaited };
  });
  const change = { topics: { ...topics, ...read }, erasers, loaded: false, happened: [...happened, 'replay' as const] };
  return [['everything is read again', change] as const];
}

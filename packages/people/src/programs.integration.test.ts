import { randomBytes } from 'node:crypto';
import { type IdentityDecisionRecord, identityDecisionCodec } from '@playline/contracts';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Applied } from './graph.ts';
import type { Cutoff, HoldName } from './guards.ts';
import { fromDecisionRecord, type LoggedFact } from './identities/decisions.ts';
import type { GraphFact } from './identities/steps.ts';
import type { People } from './people.ts';
import { rebuildGraph, toDecidedFact, toOverrides, toUnlinkSides } from './rebuild.ts';
import { type MemoryPeople, openMemoryPeople } from './test/memory/index.ts';
import { NaivePeople } from './test/naive-people.ts';
import { type Command, command, commandOrLoss, type LinkRequest, NAMES } from './test/programs.ts';
import { createScenario, describeOutcome, describeValue, type FactOptions, type Name } from './test/scenario.ts';
import { openTestPeople } from './test/test-people.ts';

// Low limits, so that many links are refused.
const limits = { identitiesMax: 5, anonymousIdsMax: 2, anonymousWindowMs: 60, uniqueTypes: ['passport'] as const };
const TICK_MS = 10;
const SIDE_BYTES = 14;
const CRASHES_MAX = 3;

const testPeople = openTestPeople();
/** A crash switches to the next store, which uses an empty namespace. */
let stores: { people: People; namespace: string }[];
let partitions = 0;

beforeAll(async () => {
  stores = [];
  for (let at = 0; at <= CRASHES_MAX; at++) stores.push(await testPeople.open({ limits }));
});
afterAll(testPeople.close);

interface ProcessedFact {
  fact: GraphFact;
  options: FactOptions;
  /** Latest outcome; `parked` until the fact is decided. */
  outcome: string[];
  /** Whether the linker has parked the fact in memory until its next round. */
  isParked: boolean;
  records: IdentityDecisionRecord[];
}

/** State before a command, to which a data loss reverts. */
interface RestorePoint {
  restore(): Promise<void>;
  readonly facts: number;
  readonly erasures: number;
}

/** Runs one program against Redis, the memory store and the naive model. */
class Run {
  readonly scenario = createScenario();
  readonly #source = { generation: 0, partition: partitions++ };
  readonly naive = new NaivePeople({ limits, compare: (a, b) => Buffer.compare(this.#key(a), this.#key(b)) });
  readonly #processed: ProcessedFact[] = [];
  readonly #erased: Cutoff[] = [];
  readonly #erasures: (HoldName & { keys: Buffer[]; cutoffMs: number })[] = [];
  readonly #holds = new Map<Name, number>();
  /** Only programs with a data loss have restore points. */
  #points: RestorePoint[] = [];
  #store = stores[0]!;
  #memory: MemoryPeople = openMemoryPeople(limits);
  #crashes = 0;
  #nowMs = 1_000;
  #lastCall = 0;
  /** Facts before this index are committed. Erasures wait for the commit. */
  #committed = 0;
  /** Decisions of facts before this index are in the log. */
  #published = 0;

  readonly #key = (name: Name) => this.scenario.keyOf(name);
  get #bothStores(): People[] {
    return [this.#store.people, this.#memory];
  }

  async start(): Promise<void> {
    await testPeople.redis.del(`${this.#store.namespace}identity:epoch`);
    for (const { rebuild } of this.#bothStores) await rebuild.mintEpoch();
  }

  /** Saves the current state, to which a later data loss may revert. */
  async saveRestorePoint(): Promise<void> {
    const restoreMemory = this.#memory.snapshot();
    const { redis } = testPeople;
    const names = this.#redisKeys();
    const dumps = await Promise.all(names.map((name) => redis.dumpBuffer(name)));
    const [progress, field] = [`${this.#store.namespace}identity:applied:`, `0/${this.#source.partition}`];
    const applied = (await redis.hget(progress, field)) ?? '-1';
    const restore = async () => {
      restoreMemory();
      const stored = names.flatMap((name, at) => (dumps[at] === null ? [] : [{ name, dump: dumps[at]! }]));
      await redis.del(...names);
      await Promise.all(stored.map(({ name, dump }) => redis.restore(name, 0, dump, 'REPLACE')));
      await redis.hset(progress, field, applied);
    };
    this.#points.push({ restore, facts: this.#processed.length, erasures: this.#erasures.length });
  }

  #redisKeys(): Buffer[] {
    const { environmentId } = this.scenario;
    const nameOf = (family: string) => `${this.#store.namespace}${family}:{${environmentId}}`;
    const families = ['f', 'u', 'd', 'h', 'hl', 'hk', 'e', 'o'].map((family) => Buffer.from(nameOf(family)));
    const untypedNames = NAMES.map((name): Name => `untyped:${name.slice(name.indexOf(':') + 1)}`);
    const ofIdentities = [...new Set([...NAMES, ...untypedNames])]
      .map(this.#key)
      .flatMap((key) => [
        ...['i', 'f'].map((family) => Buffer.from(`${nameOf(family)}:${key.readUInt16BE(0) >> 2}`)),
        Buffer.concat([Buffer.from(`${nameOf('m')}:`), key]),
      ]);
    return [...families, ...ofIdentities];
  }

  async run(step: Command): Promise<void> {
    if (step.kind === 'facts') await this.#append(step.requests.map((request) => this.#toOptions(request)));
    if (step.kind === 'repeat') await this.#repeat();
    if (step.kind === 'copy') {
      const unlinks = this.#processed.filter(({ options }) => options.link === 'unlink');
      const copied = unlinks.at(-1 - step.back);
      if (copied !== undefined) await this.#append([copied.options]);
    }
    if (step.kind === 'hold' || step.kind === 'release') await this.#changeHold(step.kind, step.name);
    if (step.kind === 'round') await this.#runRound();
    if (step.kind === 'erase') await this.#erase(step);
    if (step.kind === 'crash') await this.#crash(step);
    if (step.kind === 'loss') await this.#lose(step);
  }

  #toOptions({ link, from, to, extra, delayMs, eventAgeMs }: LinkRequest): FactOptions {
    this.#nowMs += TICK_MS;
    // Unlinks are never delayed because the operator command uses the current time.
    if (link === 'unlink') return { link, to, extra, receivedAt: this.#nowMs, eventTime: this.#nowMs };
    const receivedAt = this.#nowMs - delayMs;
    return { link, from, to, receivedAt, eventTime: receivedAt - eventAgeMs };
  }

  async #append(list: FactOptions[]): Promise<void> {
    const expected = list.map((options) => this.naive.decide(options));
    const facts = list.map((options) => this.scenario.position(options));
    this.#lastCall = this.#processed.length;
    if (list.length === 0) return;
    const applied = await this.#apply(facts);
    expect(applied.map(describeOutcome)).toEqual(expected);
    for (const [at, fact] of facts.entries())
      this.#processed.push({
        isParked: applied[at]!.kind === 'parked',
        fact,
        options: list[at]!,
        outcome: expected[at]!,
        records: this.#toLog(fact, applied[at]!),
      });
  }

  async #apply(facts: LoggedFact[]): Promise<Applied[]> {
    const block = { ...this.#source, after: facts[0]!.offset - 1, through: facts.at(-1)!.offset, facts };
    const [inStore, inMemory] = await Promise.all(this.#bothStores.map(({ graph }) => graph.apply(block)));
    expect(describeValue(inStore)).toEqual(describeValue(inMemory));
    return inStore!;
  }

  #toLog(fact: GraphFact, applied: Applied): IdentityDecisionRecord[] {
    if (applied.kind !== 'decided') return [];
    return this.scenario
      .toRecords(fact, applied.decisions)
      .map((record) => identityDecisionCodec.decode(identityDecisionCodec.encode(record)));
  }

  async #changeHold(kind: 'hold' | 'release', name: Name): Promise<void> {
    if (kind === 'hold') this.#holds.set(name, this.#nowMs);
    else this.#holds.delete(name);
    if (kind === 'hold') this.naive.hold(name, this.#nowMs);
    else this.naive.release(name);
    for (const people of this.#bothStores) await this.#putHolds(people, [name]);
  }

  /** Creates holds as the eraser and a rebuild do. */
  async #putHolds({ guards }: People, names: Iterable<Name>): Promise<void> {
    for (const name of names) {
      const hold = { environmentId: this.scenario.environmentId, erasureId: this.#key(name) };
      const cutoffMs = this.#holds.get(name);
      if (cutoffMs === undefined) await guards.releaseHold(hold);
      else await guards.putHold({ ...hold, keys: [this.#key(name)], cutoffMs, lapsesAtMs: null });
    }
  }

  async #runRound(): Promise<void> {
    const waiting = this.#processed.filter(({ isParked }) => isParked);
    for (const fact of waiting) fact.isParked = false;
    await this.#append(waiting.map(({ options }) => options));
  }

  /** The linker cannot commit past a parked fact. */
  #firstWaiting(): number {
    const first = this.#processed.findIndex(({ isParked }) => isParked);
    return first < 0 ? this.#processed.length : first;
  }

  async #repeat(): Promise<void> {
    const redelivered = this.#processed.slice(this.#lastCall);
    if (redelivered.length === 0) return;
    const applied = await this.#apply(redelivered.map(({ fact }) => fact));
    for (const [at, result] of applied.entries())
      if (result.kind === 'decided') expect(describeOutcome(result)).toEqual(redelivered[at]!.outcome);
  }

  async #erase({ name: subject, crash }: Extract<Command, { kind: 'erase' }>): Promise<void> {
    const { environmentId } = this.scenario;
    // The eraser waits until the linkers have committed all earlier facts, including parked facts.
    const end = this.#processed.length;
    await this.#runRound();
    this.#committed = Math.min(end, this.#firstWaiting());
    const keys = this.naive.erase(subject, this.#nowMs).map(this.#key);
    const cutoffs = keys.map((key) => ({ environmentId, key, cutoffMs: this.#nowMs }));
    this.#erased.push(...cutoffs);
    const erasure = { environmentId, erasureId: randomBytes(16) };
    this.#erasures.push({ ...erasure, keys, cutoffMs: this.#nowMs });
    const hold = { ...erasure, keys, cutoffMs: this.#nowMs, lapsesAtMs: null };
    for (const { guards, graph } of this.#bothStores) {
      await guards.putHold(hold);
      await guards.fence(cutoffs);
      await graph.forget(erasure, keys.slice(1));
    }
    if (crash) await this.#crash({ kind: 'crash', unpublished: 0, uncommitted: 0 });
    for (const { guards, graph } of this.#bothStores) {
      // The eraser recreates the hold after a rebuild.
      await guards.putHold(hold);
      await graph.forget(erasure, keys);
      await guards.releaseHold(erasure);
    }
    this.#nowMs += TICK_MS;
  }

  async #crash({ unpublished, uncommitted }: Extract<Command, { kind: 'crash' }>): Promise<void> {
    if (++this.#crashes > CRASHES_MAX) return;
    const isWaiting = this.#processed.some(({ outcome }) => outcome[0] === 'parked');
    // A parked fact may be decided after later facts, whose decisions must be in the log.
    const published = isWaiting
      ? this.#processed.length
      : Math.max(this.#published, this.#committed, this.#processed.length - unpublished);
    this.#published = published;
    const committed = Math.min(Math.max(this.#committed, published - uncommitted), this.#firstWaiting());
    for (const fact of this.#processed) fact.isParked = false;
    this.#points = [];
    this.#store = stores[this.#crashes]!;
    this.#memory = openMemoryPeople(limits);
    await testPeople.redis.del(`${this.#store.namespace}identity:epoch`);
    for (const people of this.#bothStores) {
      await rebuildGraph(people, this.#toSources({ published, committed }));
      await this.#putHolds(people, this.#holds.keys());
      await people.rebuild.mintEpoch();
    }
    const redelivered = this.#processed.slice(committed);
    if (redelivered.length === 0) return;
    const applied = await this.#apply(redelivered.map(({ fact }) => fact));
    for (const [at, result] of applied.entries()) {
      const before = redelivered[at]!;
      if (before.outcome[0] === 'parked') this.#updateParked(before, result);
      // The rebuilt graph already contains the decision, or the same decision is made again.
      else expect(describeOutcome(result)).toEqual(committed + at < published ? ['done'] : before.outcome);
    }
  }

  /** Redis reverts to a restore point, and the linker rewinds. All decisions have been published. */
  async #lose({ back, releasedFirst }: Extract<Command, { kind: 'loss' }>): Promise<void> {
    const point = this.#points.at(-1 - back);
    if (point === undefined) return;
    this.#points.length = this.#points.indexOf(point);
    await point.restore();
    this.#published = this.#processed.length;
    for (const people of this.#bothStores) {
      await people.guards.fence(this.#erased);
      for (const { keys, cutoffMs, ...erasure } of this.#erasures.slice(point.erasures)) {
        await people.guards.putHold({ ...erasure, keys, cutoffMs, lapsesAtMs: null });
        await people.graph.forget(erasure, keys);
        await people.guards.releaseHold(erasure);
      }
      await this.#putHolds(people, releasedFirst ? NAMES : this.#holds.keys());
    }
    const from = Math.min(this.#committed, point.facts);
    const lastDecided = this.#processed.findLastIndex(({ records }) => records.length > 0);
    const redelivered = this.#processed.slice(from);
    for (const fact of this.#processed) fact.isParked = false;
    if (redelivered.length > 0) {
      const applied = await this.#apply(redelivered.map((fact, at) => this.#toLogged(fact, from + at < lastDecided)));
      for (const [at, result] of applied.entries()) {
        const before = redelivered[at]!;
        if (before.outcome[0] === 'parked') this.#updateParked(before, result);
        else if (result.kind !== 'done') expect(describeOutcome(result)).toEqual(before.outcome);
      }
    }
    for (const people of this.#bothStores) await this.#putHolds(people, NAMES);
  }

  #toLogged({ fact, records }: ProcessedFact, isBeforeDecided: boolean): LoggedFact {
    if (records.length > 0) return { ...fact, logged: records.map(fromDecisionRecord) };
    return isBeforeDecided ? { ...fact, logged: 'parked' } : fact;
  }

  #updateParked(before: ProcessedFact, applied: Applied): void {
    before.isParked = applied.kind === 'parked';
    if (before.isParked) return;
    before.outcome = this.naive.decide(before.options);
    expect(describeOutcome(applied)).toEqual(before.outcome);
    before.records = this.#toLog(before.fact, applied);
    this.#published = this.#processed.length;
  }

  // The table has the older half of the published decisions, one row per identity. The log has the newer half. The
  // table and the log have two decisions in common.
  #toSources({ published, committed }: { published: number; committed: number }) {
    const log = this.#processed.slice(0, published).flatMap(({ records }) => records);
    const toRows = (decisions: IdentityDecisionRecord[]) =>
      decisions.flatMap((record) => toOverrides(record, BigInt(record.offset) * 256n + BigInt(record.step)));
    const half = Math.floor(log.length / 2);
    const [older, newer] = [log.slice(0, half + 2), log.slice(half)];
    return {
      fences: this.#erased,
      stored: new Map(toRows(older).map((row) => [row.key.toString('hex'), row])).values(),
      unlinks: older.flatMap(toUnlinkSides),
      decided: older.map(toDecidedFact),
      later: [...toRows(newer), ...newer.flatMap(toUnlinkSides), ...newer.map(toDecidedFact)],
      applied: [{ ...this.#source, offset: committed - 1 }],
    };
  }

  async compare(): Promise<void> {
    const { environmentId } = this.scenario;
    const hex = (name: Name) => this.#key(name).toString('hex');
    const sides = `${this.#store.namespace}u:{${environmentId}}`;
    await Promise.all(
      NAMES.map(async (name) => {
        const person = this.naive.personOf(name);
        const expected =
          person === undefined ? [] : [...person.members].map(([member, linkedAt]) => [hex(member), linkedAt]);
        for (const { graph } of this.#bothStores) {
          const root = await graph.rootOf(environmentId, this.#key(name));
          const members = await graph.membersOf(environmentId, this.#key(name));
          expect([name, root?.toString('hex')]).toEqual([name, person && hex(person.root)]);
          expect(members.map(({ key, linkedAt }) => [key.toString('hex'), linkedAt])).toEqual(expected.sort());
        }
        const stored = (await testPeople.redis.callBuffer('HGET', sides, this.#key(name))) as Buffer | null;
        expect([name, (stored?.length ?? 0) / SIDE_BYTES]).toEqual([name, this.naive.splitsOf(name)]);
      }),
    );
  }
}

it('any sequence of links, unlinks, holds, erasures and rebuilds has the same result in Redis, the memory store and the model', async () => {
  const programs = fc.array(command, { minLength: 1, maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(programs, async (commands) => {
      const run = new Run();
      await run.start();
      for (const step of commands) await run.run(step);
      await run.compare();
    }),
    { numRuns: runsOf({ quick: 100, all: 600 }) },
  );
}, 180_000);

it('a store that lost its latest writes matches the log after the published decisions are reapplied', async () => {
  const programs = fc.array(commandOrLoss, { minLength: 2, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(programs, async (commands) => {
      const run = new Run();
      await run.start();
      for (const step of commands) {
        await run.saveRestorePoint();
        await run.run(step);
      }
      await run.compare();
    }),
    { numRuns: runsOf({ quick: 50, all: 200 }) },
  );
}, 180_000);

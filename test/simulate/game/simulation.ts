import { setTimeout as delay } from 'node:timers/promises';
import { type ClickHouseAccount, overAllNodes, sendStatement } from '@playline/stores';
import { createDeck, createRandom, type Random } from '@playline/testkit/random';
import { createLanes, createPace, openHttpClient } from '../delivery.ts';
import { createDifferences, quantilesOf, type RunReport, round } from '../report.ts';
import {
  createLedger,
  createRun,
  type Ledger,
  messageIdPrefix,
  type Run,
  type RunOptions,
  toMessageId,
} from '../run.ts';
import { createPersonTracker, type Identity, identityKeyOf, ownerOf, type PersonTracker } from './persons.ts';
import {
  createProbes,
  createSendBatch,
  createSendProbe,
  createTally,
  type GameDifferenceKind,
  type GameDifferences,
  type Tally,
} from './sender.ts';
import { createTraffic } from './traffic.ts';

interface SimulationOptions extends RunOptions {
  readonly gateway: string;
  readonly clickhouse: ClickHouseAccount;
  readonly environmentId: string;
  readonly keyHeader: string;
  readonly publishableKey: string;
  readonly secretKey: string | null;
  readonly players: number;
  readonly durationMaxMs: number;
  readonly messagesMax: number;
  readonly deliveryMaxMs?: number;
}

type SimulationResult = Awaited<ReturnType<typeof simulate>>;

/** Enough concurrent requests to use two cores, while only a few MB of bodies are in memory. */
const OPEN_BATCHES_MAX = { asFastAsPossible: 16, openLoop: 128 };
const BATCHES_PER_PROBE = 40;
const POLL_MS = 1000;

/** Sends traffic, waits until all accepted messages are stored, and compares rows and persons with the model. */
export async function simulate(options: SimulationOptions) {
  const run = createRun(options.seed, Date.now());
  const state = createState(run);
  const { ledger, people, tally, differences } = state;
  const startMs = performance.now();
  const variants = await sendTraffic(state, options);
  const sentMs = performance.now() - startMs;
  const reader = createEventReader(options.clickhouse, options.environmentId, run);
  const accepted = ledger.count('accepted');
  const settled = await settle(
    { reader, run, ledger, people },
    {
      accepted,
      idleMaxMs: options.settleIdleMaxMs,
      pollMs: POLL_MS,
      onProgress: ({ raw, distinct }) =>
        options.onProgress(`stored ${distinct} of ${accepted} accepted messages in ${raw} rows`),
    },
  );
  return {
    run,
    tally,
    sentMs,
    settledMs: performance.now() - startMs - sentMs,
    unknownMessages: ledger.count('unknown'),
    reconciliation: settled.result,
    uncertainHouseholds: people.uncertainHouseholds,
    variants: variants.size,
    differences: [...differences.byKind(), ...settled.differences.byKind()],
  };
}

const createState = (run: Run) => ({
  run,
  ledger: createLedger(),
  people: createPersonTracker(),
  tally: createTally(),
  differences: createDifferences<GameDifferenceKind>(),
});
type State = ReturnType<typeof createState>;

/** Sends traffic until a limit or an interruption. @returns the names of all violations and oddities that were sent */
async function sendTraffic(state: State, options: SimulationOptions): Promise<Set<string>> {
  const { run, tally } = state;
  const { keyHeader, publishableKey, secretKey, deliveryMaxMs: totalMaxMs, onProgress } = options;
  const client = openHttpClient(options.gateway);
  const senderOptions = { ...state, client, keyHeader, publishableKey, totalMaxMs };
  const sendBatch = createSendBatch(senderOptions);
  const traffic = createTraffic({ ...state, players: options.players, brokenFraction: options.brokenFraction });
  const lanes = createLanes(options.rate === 0 ? OPEN_BATCHES_MAX.asFastAsPossible : OPEN_BATCHES_MAX.openLoop);
  // Probes share one lane, whose number follows the household lanes.
  const sendProbe = createSendProbe(senderOptions);
  const probes = createRounds(
    createRandom(run.seed),
    createProbes({ ...state, keyHeader, publishableKey, secretKey }),
    (probe) => lanes.start(traffic.households.length, () => sendProbe(probe)),
  );
  onProgress(`run ${run.tag}, seed ${run.seed}: ${traffic.households.length} households`);

  const variants = new Set<string>();
  const pace = createPace(options.rate);
  const startMs = performance.now();
  const isOver = () => options.stop.aborted || performance.now() - startMs >= options.durationMaxMs;
  const progress = setInterval(() => onProgress(toProgressLine(tally, lanes.running, startMs)), POLL_MS);
  try {
    for (let planned = 0, batches = 1; planned < options.messagesMax && !isOver(); batches++) {
      const batch = traffic.next(Date.now());
      planned += batch.messages;
      for (const variant of batch.variants) variants.add(variant);
      await pace.due(batch.messages);
      await lanes.start(batch.household, () => sendBatch(batch));
      if (batches % BATCHES_PER_PROBE === 0) await probes.next();
    }
    await probes.finish();
    await lanes.drained();
  } finally {
    clearInterval(progress);
    client.close();
  }
  return variants;
}

function createRounds<T>(random: Random, items: readonly T[], use: (item: T) => Promise<void>) {
  const draw = createDeck(random, items);
  const rest = new Set(items);
  const useItem = (item: T) => {
    rest.delete(item);
    return use(item);
  };
  return {
    next: () => useItem(draw()),
    finish: async () => {
      for (const item of [...rest]) await useItem(item);
    },
  };
}

function toProgressLine(tally: Tally, open: number, startMs: number): string {
  const seconds = (performance.now() - startMs) / 1000;
  const retries = [...tally.retries.values()].reduce((sum, value) => sum + value, 0);
  return (
    `${seconds.toFixed(0)} s: sent ${tally.messages}, accepted ${tally.accepted}, rejected ${tally.rejected}, ` +
    `${(tally.messages / seconds).toFixed(0)} messages/s, ${open} batches in flight, ${retries} retries`
  );
}

const PASSED = 'All accepted messages are stored exactly once, and all rejections and persons are as expected.';

export function toReport(result: SimulationResult): RunReport {
  const { run, tally, reconciliation: rows, unknownMessages, differences } = result;
  const seconds = result.sentMs / 1000;
  const facts = {
    sent: { batches: tally.batches, messages: tally.messages, bytes: tally.bytes, seconds: round(seconds) },
    messagesPerSecond: round(tally.messages / seconds),
    resentBatches: tally.resentBatches,
    lostAnswers: tally.lostAnswers,
    repeatedTries: Object.fromEntries(tally.retries),
    accepted: tally.accepted,
    rejected: tally.rejected,
    rejectedByCode: Object.fromEntries(tally.rejectedByCode),
    unknown: { batches: tally.unknownBatches, messages: unknownMessages, stored: rows.unknownStored },
    probes: tally.probes,
    ways: result.variants,
    rows: { raw: rows.raw, exact: rows.exact },
    persons: { ...rows.persons, householdsLeftOut: result.uncertainHouseholds },
    acknowledgedMs: quantilesOf(tally.latency),
    settleSeconds: round(result.settledMs / 1000),
  };
  return { run, facts, success: PASSED, differences };
}

export interface StoredOwner {
  readonly kind: string;
  readonly id: string;
  readonly persons: readonly string[];
}

export interface EventReader {
  counts(): Promise<{ raw: number; distinct: number }>;
  eachSequence(each: (sequence: number) => void): Promise<void>;
  /** @returns all event owners; `kind` is '' for events without an owner */
  owners(): Promise<StoredOwner[]>;
}

const RUN_ROWS = `environment_id = {environment:String} AND startsWith(toString(message_id), {prefix:String})`;
const OWNERS = `
  SELECT if(identity_type = '', 'untyped', toString(identity_type)) AS kind, user_id, anonymous_id,
    groupUniqArray(3)(lower(hex(person_key))) AS persons
  FROM events_identified WHERE ${RUN_ROWS} GROUP BY kind, user_id, anonymous_id FORMAT JSONCompactEachRow`;
const QUERY_MAX_MS = 120_000;
const UUID_BYTES = 16;

export function createEventReader(address: ClickHouseAccount, environmentId: string, run: Run): EventReader {
  const settings = { param_environment: environmentId, param_prefix: messageIdPrefix(run) };
  const query = (sql: string): Promise<Response> =>
    sendStatement(address, { body: sql, settings, deadlineMs: QUERY_MAX_MS });
  const events = `${overAllNodes(address).database}.events`;
  return {
    counts: async () => {
      const sql = `SELECT count(), uniqExact(message_id) FROM ${events} WHERE ${RUN_ROWS} FORMAT TabSeparated`;
      const [raw = 0, distinct = 0] = (await (await query(sql)).text()).trim().split('\t').map(Number);
      return { raw, distinct };
    },
    eachSequence: async (each) => {
      const response = await query(`SELECT message_id FROM events_exact WHERE ${RUN_ROWS} FORMAT RowBinary`);
      for await (const id of readRows(response)) each(id.readUInt32LE(UUID_BYTES / 2));
    },
    owners: async () => {
      const text = await (await query(OWNERS)).text();
      const owners = new Map<string, StoredOwner>();
      for (const line of text.split('\n').filter(Boolean)) {
        const [kind, userId, anonymousId, persons] = JSON.parse(line) as [Identity['kind'], string, string, string[]];
        const { kind: ownerKind, id } = ownerOf({ kind, id: userId }, anonymousId) ?? { kind: '', id: '' };
        const name = `${ownerKind} ${id}`;
        const known = owners.get(name)?.persons ?? [];
        owners.set(name, { kind: ownerKind, id, persons: [...new Set([...known, ...persons])] });
      }
      return [...owners.values()];
    },
  };
}

async function* readRows(response: Response): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of response.body ?? []) {
    const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    let start = 0;
    for (; start + UUID_BYTES <= bytes.length; start += UUID_BYTES) yield bytes.subarray(start, start + UUID_BYTES);
    rest = bytes.subarray(start);
  }
  if (rest.length > 0) throw new Error('the ClickHouse response ended within a row');
}

interface Compared {
  readonly reader: EventReader;
  readonly run: Run;
  readonly ledger: Ledger;
  readonly people: PersonTracker;
}

async function reconcile(compared: Compared, differences: GameDifferences) {
  const { rowsOf: _, ...rows } = await compareMessages(compared, differences);
  const persons = await comparePersons(compared, differences);
  return { ...rows, persons };
}

/** Compares rows with the ledger. @returns counts, and the number of rows by sequence number */
export async function compareMessages({ reader, run, ledger }: Omit<Compared, 'people'>, differences: GameDifferences) {
  const { raw } = await reader.counts();
  const rowsOf = new Uint8Array(ledger.taken);
  let exact = 0;
  await reader.eachSequence((sequence) => {
    exact++;
    if (sequence >= ledger.taken) differences.add('uninvited', `${toMessageId(run, sequence)} was never sent`);
    else if (rowsOf[sequence]! < 255) rowsOf[sequence]!++;
  });
  // Unacknowledged messages may be stored.
  let unknownStored = 0;
  for (let sequence = 0; sequence < ledger.taken; sequence++) {
    const [outcome, rows] = [ledger.outcomeOf(sequence), rowsOf[sequence]!];
    if (outcome === 'accepted' && rows === 0) differences.add('missing', toMessageId(run, sequence));
    if (rows > 1) differences.add('doubled', `${toMessageId(run, sequence)}: ${rows} rows`);
    if (rows > 0 && outcome === 'unknown') unknownStored++;
    else if (rows > 0 && outcome !== 'accepted')
      differences.add('uninvited', `${toMessageId(run, sequence)} was ${outcome}`);
  }
  return { raw, exact, unknownStored, rowsOf };
}

/** Compares how owners are grouped into persons. Person keys depend on a secret, so they are not compared. */
async function comparePersons({ reader, people }: Compared, differences: GameDifferences) {
  // Maps between stored persons and model persons, with the first owner.
  const modelOf = new Map<string, { model: string; name: string }>();
  const storedOf = new Map<string, { stored: string; name: string }>();
  const seen = new Set<string>();
  for (const { kind, id, persons } of await reader.owners()) {
    const owner = { kind, id } as Identity;
    const name = `${kind} ${id}`;
    if (kind === '') {
      if (persons.join() !== '0'.repeat(32))
        differences.add('person', `events without an owner belong to the persons ${persons.join(', ')}`);
      continue;
    }
    if (people.isUncertain(owner)) continue;
    if (!people.owners.has(identityKeyOf(owner))) {
      differences.add('person', `${name} owns events but was never accepted`);
      continue;
    }
    seen.add(identityKeyOf(owner));
    if (persons.length !== 1) differences.add('person', `${name} belongs to ${persons.length} persons`);
    const [stored, model] = [persons[0]!, people.model.personOf(owner)];
    const known = storedOf.get(model) ?? { stored, name };
    if (known.stored !== stored) differences.add('person', `${name} should be one person with ${known.name}`);
    const knownModel = modelOf.get(stored) ?? { model, name };
    if (knownModel.model !== model)
      differences.add('person', `${name} should not be one person with ${knownModel.name}`);
    storedOf.set(model, known);
    modelOf.set(stored, knownModel);
  }
  for (const [key, { identity }] of people.owners) {
    if (!seen.has(key) && !people.isUncertain(identity)) differences.add('person', `${key} owns no stored events`);
  }
  return { model: people.persons(), stored: modelOf.size };
}

// Compares repeatedly until there are no differences and the rows no longer change, or until nothing has changed for
// `idleMaxMs`.
export async function settle(
  compared: Compared,
  options: {
    readonly accepted: number;
    readonly idleMaxMs: number;
    readonly pollMs: number;
    onProgress?(rows: { raw: number; distinct: number }): void;
  },
) {
  let last = '';
  let changedAt = performance.now();
  for (;;) {
    const rows = await compared.reader.counts();
    options.onProgress?.(rows);
    const differences = createDifferences<GameDifferenceKind>();
    // A comparison reads all rows, so the first comparison waits until all accepted messages are stored.
    const result = rows.distinct >= options.accepted ? await reconcile(compared, differences) : null;
    const state = JSON.stringify([rows, result, differences.total]);
    const isUnchanged = state === last;
    if (isUnchanged && result !== null && differences.total === 0) return { result, differences };
    if (!isUnchanged) changedAt = performance.now();
    last = state;
    if (performance.now() - changedAt > options.idleMaxMs) {
      return { result: result ?? (await reconcile(compared, differences)), differences };
    }
    await delay(options.pollMs);
  }
}

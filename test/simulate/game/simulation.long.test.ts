import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import {
  type AcceptedMessage,
  EVENT_AGE_MAX_MS,
  EVENT_AHEAD_MAX_MS,
  type MessagesResponse,
  validateBatch,
} from '@playline/contracts';
import { testStores } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPersonsModel, type Identity, ownerOf } from './persons.ts';
import { type SimulationResult, simulate } from './simulation.ts';

const KEY = 'pk_test-key';
const { url, user, password } = testStores().clickhouse;
const database = `operator_test_${randomBytes(4).toString('hex')}`;

async function query(sql: string, within = ''): Promise<string> {
  const headers = { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password };
  const response = await fetch(`${url}/?database=${within}`, { method: 'POST', headers, body: sql });
  if (!response.ok) throw new Error(await response.text());
  return response.text();
}

/** Faults of the stand-in for gateway and consumers, which the run must find. */
interface Faults {
  /** Answers 500 to every third request, after storing the first half of the batch. */
  halfStored?: boolean;
  lose?: boolean;
  double?: boolean;
  storeRejected?: boolean;
  misjudge?: boolean;
  joinEverybody?: boolean;
  refuseUnavailable?: boolean;
}

interface Row {
  environment_id: string;
  message_id: string;
  identity_type: string;
  user_id: string;
  anonymous_id: string;
}

const ownerOfRow = (row: Row): Identity | null =>
  ownerOf({ kind: (row.identity_type || 'untyped') as Identity['kind'], id: row.user_id }, row.anonymous_id);

/** Returns true once, after some requests, for a requested fault. */
function createSpoiler() {
  let [requests, spoilt] = [0, 0];
  return {
    request: () => ++requests,
    once: (wanted: boolean | undefined) => wanted === true && requests > 5 && spoilt++ === 0,
  };
}
type Spoiler = ReturnType<typeof createSpoiler>;

/** Consumers and store in one. */
function createStandInStore(faults: Faults, spoiler: Spoiler) {
  const rows: Row[] = [];
  const doubled = new Set<string>();
  const model = createPersonsModel();
  const kindOf = (type: Identity['kind'] | undefined) => type ?? 'untyped';

  const link = ({ message }: AcceptedMessage) => {
    const { type, anonymousId, userId, fromId, toId } = message;
    if (type === 'identify' && userId && anonymousId) {
      const to = { kind: kindOf(message.identityType), id: userId };
      model.apply({ link: type, from: { kind: 'anonymous', id: anonymousId }, to });
    }
    if (type === 'alias' && fromId && toId) {
      const from = { kind: kindOf(message.fromType), id: fromId };
      model.apply({ link: type, from, to: { kind: kindOf(message.toType), id: toId } });
    }
  };
  const store = (accepted: AcceptedMessage) => {
    const { messageId, anonymousId = '', userId = '', identityType = '' } = accepted.message;
    if (spoiler.once(faults.lose)) return;
    const ids = { identity_type: identityType, user_id: userId, anonymous_id: anonymousId };
    const row = { environment_id: 'test-production', message_id: messageId.toLowerCase(), ...ids };
    rows.push(row);
    if (spoiler.once(faults.double)) {
      rows.push(row);
      doubled.add(row.message_id);
    }
    link(accepted);
  };
  const personOf = (owner: Identity) => {
    return faults.joinEverybody ? 'everybody' : model.personOf(owner);
  };
  /** Fills the tables that reconciliation reads: without a fault the exact view has each message once. */
  const flush = async () => {
    const seen = new Set<string>();
    const lines = rows.map((row) => {
      const owner = ownerOfRow(row);
      const isExact = !seen.has(row.message_id) || doubled.has(row.message_id);
      seen.add(row.message_id);
      return JSON.stringify({ ...row, person: owner === null ? '' : personOf(owner), is_exact: isExact ? 1 : 0 });
    });
    await query('TRUNCATE TABLE stored', database);
    if (lines.length > 0) await query(`INSERT INTO stored FORMAT JSONEachRow\n${lines.join('\n')}`, database);
  };
  return { rows, store, flush };
}

/** A gateway in front of such a store: as small as the contract allows, with the given faults. */
async function openStandIn(faults: Faults) {
  const spoiler = createSpoiler();
  const { rows, store, flush } = createStandInStore(faults, spoiler);

  const answer = (request: IncomingMessage, response: ServerResponse, body: Buffer) => {
    const requests = spoiler.request();
    const verdict = judge(request, body);
    if (verdict.kind !== 'validated') return respond(response, verdict.status, envelope(verdict.code));
    const isHalf = faults.halfStored === true && requests % 3 === 0;
    const half = verdict.accepted.slice(0, isHalf ? verdict.accepted.length / 2 : undefined);
    for (const accepted of half) store(accepted);
    if (isHalf || faults.refuseUnavailable) return respond(response, 500, envelope('INTERNAL_SERVER_ERROR'));
    if (spoiler.once(faults.misjudge)) verdict.response.accepted++;
    const refused = verdict.response.rejections.find(({ messageId }) => /^[0-9a-f-]{36}$/.test(messageId));
    if (refused !== undefined && spoiler.once(faults.storeRejected))
      rows.push({ ...rows[0]!, message_id: refused.messageId });
    respond(response, verdict.response.accepted > 0 ? 200 : 400, verdict.response);
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => answer(request, response, Buffer.concat(chunks)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, flush, close: () => server.close() };
}

type Judged =
  | { kind: 'refused'; status: number; code: string }
  | { kind: 'validated'; accepted: AcceptedMessage[]; response: MessagesResponse };

const INFLATE: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Buffer> = {
  identity: (bytes) => bytes,
  gzip: gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};
const LIMIT = 1024 * 1024;

function judge(request: IncomingMessage, raw: Buffer): Judged {
  const refuse = (status: number, code: string): Judged => ({ kind: 'refused', status, code });
  const invalid = refuse(400, 'VALIDATION_ERROR');
  if (request.url !== '/v1/audience/messages' || request.method !== 'POST') return refuse(404, 'RESOURCE_NOT_FOUND');
  const key = request.headers['x-service-publishable-key'];
  if (key === undefined || request.headers['content-type'] !== 'application/json') return invalid;
  if (key !== KEY) return refuse(401, 'UNAUTHORISED_REQUEST');
  try {
    const inflate = INFLATE[request.headers['content-encoding'] ?? 'identity']!;
    const bytes = inflate(raw, { maxOutputLength: LIMIT });
    if (bytes.length > LIMIT) return invalid;
    const document = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    const sources = (Array.isArray(document.messages) ? document.messages : []).map(
      (element: { messageId?: unknown } | null) => ({
        bytes: Buffer.byteLength(JSON.stringify(element)),
        messageIdText: JSON.stringify(element?.messageId) ?? '',
      }),
    );
    const window = { fromMs: Date.now() - EVENT_AGE_MAX_MS, toMs: Date.now() + EVENT_AHEAD_MAX_MS };
    const verdict = validateBatch(document, { window, sources });
    return verdict.kind === 'fault' ? invalid : verdict;
  } catch {
    return invalid;
  }
}

function envelope(code: string) {
  return { message: 'no', link: 'https://errors.example', trace_id: '0'.repeat(32), code, details: null };
}

function respond(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function run(faults: Faults, options: { messages?: number } = {}): Promise<SimulationResult> {
  const standIn = await openStandIn(faults);
  let isFlushed: Promise<void> | null = null;
  try {
    return await simulate({
      gateway: `http://127.0.0.1:${standIn.port}`,
      clickhouse: { url, user, password, database },
      environmentId: 'test-production',
      keyHeader: 'x-service-publishable-key',
      publishableKey: KEY,
      secretKey: 'sk_test-key',
      players: 40,
      seed: 5,
      rate: 0,
      durationMaxMs: 60_000,
      messagesMax: options.messages ?? 3000,
      brokenShare: 0.05,
      settleIdleMaxMs: 1500,
      deliveryMaxMs: faults.refuseUnavailable ? 1 : 20_000,
      stop: new AbortController().signal,
      onProgress: (line) => {
        // The stand-in's consumers catch up only while the run waits for them.
        if (line.startsWith('stored')) isFlushed ??= standIn.flush();
      },
    });
  } finally {
    await isFlushed;
    standIn.close();
  }
}

beforeAll(async () => {
  await query(`CREATE DATABASE ${database}`);
  await query(
    `CREATE TABLE stored (environment_id String, message_id UUID, identity_type LowCardinality(String), user_id String,
      anonymous_id String, person String, is_exact UInt8) ENGINE = MergeTree ORDER BY message_id`,
    database,
  );
  await query('CREATE VIEW events AS SELECT * FROM stored', database);
  await query('CREATE VIEW events_exact AS SELECT * FROM stored WHERE is_exact', database);
  await query(
    `CREATE VIEW events_identified AS
      SELECT *, if(person = '', toFixedString('', 16), MD5(person)) AS person_key FROM events_exact`,
    database,
  );
});
afterAll(async () => {
  await query(`DROP DATABASE ${database}`);
});

describe('simulate', () => {
  it('finds no differences in a correct service', async () => {
    const result = await run({});
    expect(result.differences).toEqual([]);
    expect(result.reconciliation.exact).toBe(result.tally.accepted);
    expect(result.reconciliation.raw).toBeGreaterThan(result.reconciliation.exact);
    expect(result.reconciliation.persons.stored).toBe(result.reconciliation.persons.model);
    expect(result.tally.probes).toBeGreaterThanOrEqual(19);
    expect(result.unknownMessages).toBe(0);
  });

  it('finds no differences when batches are partly stored, answered 500 and sent again', async () => {
    const result = await run({ halfStored: true });
    expect(result.tally.retries.get('status 500')).toBeGreaterThan(10);
    expect(result.differences).toEqual([]);
  });

  it('expects nothing of batches that were never acknowledged', async () => {
    const result = await run({ refuseUnavailable: true }, { messages: 300 });
    expect(result.tally.accepted).toBe(0);
    expect(result.reconciliation.unknownStored).toBe(result.unknownMessages);
    expect(result.differences).toEqual([]);
  });

  it.each<[string, Faults, string]>([
    ['one accepted message is lost', { lose: true }, 'missing'],
    ['one message is doubled in the exact view', { double: true }, 'doubled'],
    ['one rejected message is stored', { storeRejected: true }, 'uninvited'],
    ['one answer counts wrongly', { misjudge: true }, 'answer'],
    ['strangers are one person', { joinEverybody: true }, 'person'],
  ])('reports a difference when %s', async (_name, faults, kind) => {
    const result = await run(faults, { messages: 1500 });
    expect(result.differences.map((difference) => difference.kind)).toEqual([kind]);
  });
});

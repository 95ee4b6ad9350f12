import type { OpenIdProvider } from '@playline/access-keys';
import type { LiveEvent, LiveHub } from '../../services/portal/src/live/index.ts';
import type {
  ActivityLine,
  AuditLine,
  ErasureLine,
  LinkDecision,
  MessageLine,
  MintLine,
} from '../../services/portal/src/reads/index.ts';
import { createMemoryReads, type MemoryRows } from '../../services/portal/src/test/memory-reads.ts';
import { openPortal, type TestPortal } from '../../services/portal/src/test/open-portal.ts';
import type { TextOf } from './planted.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type Rows = Required<MemoryRows>;

/** Rows of the stores that the portal only reads, by environment or project. */
export type PlantedRows = { readonly [K in keyof Rows]: Writable<Rows[K]> } & {
  readonly live: Record<string, LiveEvent[]>;
};

const STORES =
  'rejections steps traces messages links consents ids erasures activities tokens mints mintSigners audit live';

export interface PlantedPortal extends TestPortal {
  readonly rows: PlantedRows;
}

export async function openPlantedPortal(own: Parameters<typeof openPortal>[0] = {}): Promise<PlantedPortal> {
  const rows = Object.fromEntries(STORES.split(' ').map((name) => [name, {}])) as unknown as PlantedRows;
  const portal = await openPortal({
    config: { PORTAL_SECRET: Buffer.alloc(32, 1), TRUSTED_PROXIES: 1 },
    reads: createMemoryReads(rows),
    live: createPlantedLive(rows.live),
    openIdProvider: createNearProvider(),
    ...own,
  });
  return { ...portal, rows };
}

/** Sends each client the events of its environment and then ends, so that a stream can be read whole. */
function createPlantedLive(planted: PlantedRows['live']): LiveHub {
  return {
    subscribe: ({ environmentId }) => {
      const waiting = [...(planted[environmentId] ?? [])];
      return { next: async () => waiting.shift() ?? null, close: () => {} };
    },
    subscribers: 0,
    buffered: { entries: 0, bytes: 0 },
    close: async () => {},
  };
}

export const STORED_ID = '0192f3a4-5b6c-7d8e-9f00-000000000001';
export const TRACE_ID = 'abcdef0123456789abcdef0123456789';

export function plantRows({ rows }: PlantedPortal, scope: RowsScope, textOf: TextOf): void {
  const { environmentId, projectId } = scope;
  const client = {
    code: textOf('code of a rejection'),
    field: textOf('field of a rejection'),
    surface: textOf('surface of a rejection'),
    library: textOf('library of a rejection'),
    libraryVersion: textOf('version of a library'),
  };
  rows.rejections[environmentId] = [{ ...client, errors: 73_137, lastMs: Date.now(), lastTraceId: TRACE_ID }];
  const hours = Array.from({ length: 12 }, (_, at) => Math.floor(Date.now() / 3_600_000 - at) * 3_600_000);
  rows.steps[environmentId] = hours.map((stepMs, at) => ({ stepMs, code: client.code, errors: 1 + ((at * 7) % 11) }));
  rows.traces[environmentId] = { [TRACE_ID]: [{ ...client, receivedMs: Date.now() }] };
  rows.erasures[environmentId] = [toErasure(scope)];
  const failed = { status: 'failed', stage: 'settled', error: textOf('why a mint failed') };
  rows.mints[environmentId] = [toMint(textOf), { ...toMint(textOf), ...failed }];
  const stored = { name: textOf('name of a stored event'), surface: textOf('surface of a stored event') };
  rows.messages[environmentId] = [toMessage(textOf), { ...toMessage(textOf), ...stored, messageId: STORED_ID }];
  rows.audit[projectId] = [toAuditLine(environmentId, textOf)];
  rows.live[environmentId] = toEvents(textOf);
}

/** Adds a sale and a payout of a contract. Every field that a chain or a contract controls has its own text. */
export function plantActivities({ rows }: PlantedPortal, contractAddress: string, textOf: TextOf): void {
  const contract = { chain: 'demo-chain', contractAddress };
  const name = `demo-chain ${contractAddress}`;
  const nowMs = Date.now();
  const sale: ActivityLine = {
    ...contract,
    id: textOf('id of an activity'),
    type: textOf('kind of an activity'),
    updatedUs: nowMs * 1000,
    updatedMs: nowMs,
    indexedMs: nowMs - 60_000,
    from: textOf('address of a seller'),
    to: textOf('address of a buyer'),
    assets: [{ contractAddress, tokenId: textOf('id of a token'), amount: textOf('amount of an activity') }],
    payment: { contractAddress: '', symbol: textOf('symbol of a coin'), amount: textOf('price of a sale') },
    transactionHash: textOf('transaction of an activity'),
    blockNumber: textOf('block of an activity'),
  };
  const payout = {
    ...sale,
    id: STORED_ID,
    updatedUs: nowMs * 1000 - 1,
    payment: null,
    assets: [{ contractAddress, tokenId: '', amount: '7' }],
  };
  rows.activities[name] = [sale, payout];
  rows.tokens[name] = {
    ...contract,
    name: textOf('name of a token'),
    symbol: textOf('symbol of a token'),
    decimals: 2,
  };
}

function toMint(textOf: TextOf): MintLine {
  const address = `0x${'ab'.repeat(20)}`;
  return {
    chain: 'demo-chain',
    contractAddress: address,
    ownerAddress: address,
    signerAddress: address,
    referenceId: textOf('reference id of a mint'),
    requestedMs: Date.now(),
    changedMs: Date.now(),
    tokenId: '7',
    amount: null,
    status: 'pending',
    stage: 'waiting',
    transactionHash: `0x${'cd'.repeat(32)}`,
    reason: textOf('why a mint waits'),
    error: null,
    traceId: TRACE_ID,
  };
}

function toMessage(textOf: TextOf): MessageLine {
  return {
    messageId: textOf('message id in a list'),
    happenedMs: Date.now() - 1_000,
    receivedMs: Date.now() - 1_000,
    type: textOf('type in a list'),
    name: textOf('name in a list'),
    surface: textOf('surface in a list'),
    library: '',
    libraryVersion: '',
    isTest: false,
    consentLevel: '',
    identityId: '0'.repeat(32),
    anonymousId: '',
    userId: textOf('user id in a list'),
    identityType: '',
    traceId: textOf('trace in a list'),
  };
}

interface OfPerson {
  readonly environmentId: string;
  readonly identityId: string;
}

/** Adds a person's link decisions, one linked and one refused, and a consent. */
export function plantDecisions({ rows }: PlantedPortal, of: OfPerson, textOf: TextOf): void {
  const { environmentId, identityId } = of;
  const other = { identityId: 'f'.repeat(32), kind: textOf('kind of another identity') };
  const decision: LinkDecision = {
    receivedMs: Date.now(),
    link: textOf('link'),
    outcome: 'refused',
    reason: textOf('reason of a refusal'),
    a: { identityId, kind: textOf('kind of an identity') },
    b: other,
    movedCount: 1,
    messageId: textOf('message of a link'),
    traceId: textOf('trace of a link'),
  };
  const linked = { ...decision, outcome: 'linked', reason: '', messageId: textOf('message that linked') };
  rows.links[environmentId] = [decision, linked];
  rows.consents[environmentId] = [
    {
      identityId,
      status: textOf('status of a consent'),
      source: textOf('source of a consent'),
      receivedMs: Date.now(),
      traceId: textOf('trace of a consent'),
    },
  ];
}

export interface RowsScope {
  readonly projectId: string;
  readonly environmentId: string;
  readonly erasureId: string;
}

function toErasure({ erasureId }: RowsScope): ErasureLine {
  const requestedMs = Date.now() - 3_600_000;
  const times = { fencedMs: requestedMs + 5_000, visiblyErasedMs: requestedMs + 9_000, physicallyErasedMs: null };
  return {
    erasureId,
    requestedMs,
    cutoffMs: requestedMs,
    traceId: TRACE_ID,
    state: 'visible',
    identities: 73_173,
    deleted: 73_173,
    ...times,
    logExpiresMs: requestedMs + 86_400_000,
    logExpiredMs: null,
  } as unknown as ErasureLine;
}

function toAuditLine(environmentId: string, textOf: TextOf): AuditLine {
  return {
    happenedMs: Date.now() - 1_000,
    entryId: 'an entry',
    environmentId,
    kind: 'project',
    revision: 3,
    object: textOf('object of a change'),
    action: textOf('action'),
    actor: textOf('actor'),
    requestId: textOf('request of a change'),
    address: textOf('address of an actor'),
    detail: JSON.stringify({ name: textOf('name in a change') }),
  };
}

function toEvents(textOf: TextOf): LiveEvent[] {
  const head = { outcome: 'stored', receivedAt: Date.now(), traceId: TRACE_ID, reason: '' } as const;
  return [
    {
      kind: 'message',
      ...head,
      position: 'm-0-1',
      type: 'track',
      name: textOf('name of an event'),
      messageId: '0192f3a4-5b6c-7d8e-9f00-000000000002',
      eventTime: Date.now(),
      test: true,
      surface: textOf('surface of an event'),
      library: textOf('library'),
      libraryVersion: textOf('version'),
      ids: { anonymousId: textOf('anonymous id'), userId: textOf('user id') },
      pageUrl: textOf('page of an event'),
      isCut: true,
      properties: JSON.stringify({ screen: textOf('a property') }),
      traits: JSON.stringify({ email: textOf('a trait') }),
    },
    {
      kind: 'rejection',
      ...head,
      outcome: 'rejected',
      position: 'r-0-1',
      code: textOf('code of an event'),
      field: textOf('field of an event'),
      surface: textOf('surface of what was rejected'),
      library: textOf('library of what was rejected'),
      libraryVersion: textOf('version of what was rejected'),
    },
  ];
}

/** Where every form for the identity provider leads, whatever the user typed. */
export const NEAR_PROVIDER = 'https://id.example.test/authorize';

/** A provider of which only the address is used: no user signs in there or comes back. */
function createNearProvider(): OpenIdProvider {
  return {
    label: 'Work',
    origins: [new URL(NEAR_PROVIDER).origin],
    authorization: async () => new URL(NEAR_PROVIDER),
    prove: async () => null,
  };
}

import type { OpenIdProvider } from '@playline/access-keys';
import type { LiveEvent, LiveHub } from '../../services/portal/src/live/index.ts';
import type {
  ActivityLine,
  AuditLine,
  ErasureLine,
  MessageLine,
  MintLine,
  Overview,
  TimelineEntry,
} from '../../services/portal/src/reads/index.ts';
import { createMemoryReads, type MemoryRows } from '../../services/portal/src/test/memory-reads.ts';
import { openPortal, type TestPortal } from '../../services/portal/src/test/open-portal.ts';
import { HOSTILE } from './hostile-texts.ts';
import type { ToText } from './seed.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type Rows = Required<MemoryRows>;

/** Rows in the read-only stores, by environment id or project id. */
export type SeededRows = { readonly [K in keyof Rows]: Writable<Rows[K]> } & {
  readonly live: Record<string, LiveEvent[]>;
};

const STORES =
  'overviews rejections traces messages details timelines profiles ids erasures activities tokens mints mintSigners audit live';

export interface SeededPortal extends TestPortal {
  readonly rows: SeededRows;
}

export async function openSeededPortal(parts: Parameters<typeof openPortal>[0] = {}): Promise<SeededPortal> {
  const rows = Object.fromEntries(STORES.split(' ').map((name) => [name, {}])) as unknown as SeededRows;
  const portal = await openPortal({
    config: { PORTAL_SECRET: Buffer.alloc(32, 1), TRUSTED_PROXIES: 1 },
    reads: createMemoryReads(rows),
    live: createFakeLive(rows.live),
    openIdProvider: createFakeProvider(),
    ...parts,
  });
  return { ...portal, rows };
}

/** Sends all events of an environment and then closes the stream, so that tests can read the complete response. */
function createFakeLive(events: SeededRows['live']): LiveHub {
  return {
    subscribe: ({ environmentId }) => {
      const queue = [...(events[environmentId] ?? [])];
      return { next: async () => queue.shift() ?? null, close: () => {} };
    },
    subscribers: 0,
    buffered: { entries: 0, bytes: 0 },
    close: async () => {},
  };
}

export const STORED_ID = '0192f3a4-5b6c-7d8e-9f00-000000000001';
export const TRACE_ID = 'abcdef0123456789abcdef0123456789';

export function seedRows({ rows }: SeededPortal, scope: RowsScope, toText: ToText): void {
  const { environmentId, projectId } = scope;
  const surface = toText('rejection surface');
  const client = {
    code: toText('rejection code'),
    field: toText('rejection field'),
    library: toText('rejection library'),
    libraryVersion: toText('rejection client version'),
  };
  rows.overviews[environmentId] = toOverview(toText);
  const trend = new Map(Array.from({ length: 12 }, (_, step) => [step, 1 + ((step * 7) % 11)]));
  const times = { firstMs: Date.now() - 3_600_000, lastMs: Date.now() };
  const counts = { errors: 73_137, requests: 73_000, trend, ...times };
  rows.rejections[environmentId] = [{ ...client, ...counts, surfaces: [surface], traceIds: [TRACE_ID] }];
  rows.traces[environmentId] = { [TRACE_ID]: [{ ...client, surface, receivedMs: Date.now() }] };
  rows.erasures[environmentId] = [toErasure(scope)];
  const failed = { status: 'failed', stage: 'settled', error: toText('mint error') };
  rows.mints[environmentId] = [toMint(toText), { ...toMint(toText), ...failed }];
  const stored = { name: toText('stored event name'), surface: toText('stored event surface') };
  rows.messages[environmentId] = [toMessage(toText), { ...toMessage(toText), ...stored, messageId: STORED_ID }];
  rows.details[STORED_ID] = {
    deviceId: toText('stored device id'),
    userAgent: toText('stored user agent'),
    pageUrl: toText('stored page URL'),
    properties: JSON.stringify({ level: toText('stored property') }),
    traits: toText('stored traits'),
  };
  const fired = { action: 'alert.fired', entryId: 'an alert', detail: JSON.stringify({ text: toText('fired text') }) };
  rows.audit[projectId] = [toAuditLine(environmentId, toText), { ...toAuditLine(environmentId, toText), ...fired }];
  rows.live[environmentId] = toEvents(toText);
}

/** Adds a sale and a payout with a different string in every field that a chain or contract controls. */
export function seedActivities({ rows }: SeededPortal, contractAddress: string, toText: ToText): void {
  const contract = { chain: 'demo-chain', contractAddress };
  const name = `demo-chain ${contractAddress}`;
  const nowMs = Date.now();
  const sale: ActivityLine = {
    ...contract,
    id: toText('activity id'),
    type: toText('activity type'),
    updatedUs: nowMs * 1000,
    updatedMs: nowMs,
    indexedMs: nowMs - 60_000,
    from: toText('seller address'),
    to: toText('buyer address'),
    assets: [{ contractAddress, tokenId: toText('token id'), amount: toText('activity amount') }],
    payment: { contractAddress: '', symbol: toText('coin symbol'), amount: toText('sale price') },
    transactionHash: toText('activity transaction'),
    blockNumber: toText('activity block'),
  };
  const payout = {
    ...sale,
    id: STORED_ID,
    updatedUs: nowMs * 1000 - 1,
    payment: null,
    assets: [{ contractAddress, tokenId: '', amount: '7' }],
  };
  rows.activities[name] = [sale, payout];
  rows.tokens[name] = { ...contract, name: toText('token name'), symbol: toText('token symbol'), decimals: 2 };
}

function toMint(toText: ToText): MintLine {
  const address = `0x${'ab'.repeat(20)}`;
  return {
    chain: 'demo-chain',
    contractAddress: address,
    ownerAddress: address,
    signerAddress: address,
    referenceId: toText('mint reference id'),
    requestedMs: Date.now(),
    changedMs: Date.now(),
    tokenId: '7',
    amount: null,
    status: 'pending',
    stage: 'waiting',
    transactionHash: `0x${'cd'.repeat(32)}`,
    reason: toText('mint wait reason'),
    error: null,
    traceId: TRACE_ID,
  };
}

function toMessage(toText: ToText): MessageLine {
  return {
    messageId: '0192f3a4-5b6c-7d8e-9f00-000000000003',
    happenedMs: Date.now() - 1_000,
    receivedMs: Date.now() - 1_000,
    type: toText('listed type'),
    name: toText('listed name'),
    surface: toText('listed surface'),
    library: '',
    libraryVersion: '',
    isTest: false,
    consentLevel: '',
    identityId: '0'.repeat(32),
    anonymousId: '',
    userId: toText('listed user id'),
    identityType: '',
    traceId: toText('listed trace id'),
  };
}

/** Event names and client versions that the overview shows in every environment, also to tests of the layout. */
const HOSTILE_NAMES = [
  ...['a script element', 'an injected attribute', 'bidirectional overrides'].map((name) => HOSTILE[name] ?? ''),
  'w'.repeat(200),
];
const CHART_STEP_S = 600;
const CHART_POINTS = 144;

/** An overview with all figures, a chart of a day, and a cause that grew, so that the page shows the callout. */
function toOverview(toText: ToText): Partial<Overview> {
  const line = { part: '', name: '', field: '', library: '', libraryVersion: '', atS: 0 };
  const counts = { value: 73_137, previous: 137, total: 73_137, previousTotal: 137 };
  const client = { library: toText('counted library'), libraryVersion: toText('counted version') };
  const cause = { name: toText('counted rejection code'), field: toText('counted rejection field') };
  const nowS = Math.floor(Date.now() / 1000);
  const lastS = nowS - (nowS % CHART_STEP_S);
  const toPoints = (valueMax: number) =>
    Array.from({ length: CHART_POINTS }, (_, index) => ({
      atS: lastS - (CHART_POINTS - index) * CHART_STEP_S,
      value: (index * 37) % valueMax,
    }));
  return {
    firstS: 1,
    accepted: toPoints(7_313),
    rejected: toPoints(73),
    players: { ...line, ...counts, atS: nowS },
    delay: { ...line, ...counts, value: 1_137, previous: 970 },
    openErasures: 2,
    pendingMints: 1_373,
    clients: [client, ...HOSTILE_NAMES.map((name) => ({ library: 'playline-unity', libraryVersion: name }))].map(
      (each) => ({
        ...line,
        ...each,
        ...counts,
      }),
    ),
    causes: [{ ...line, ...client, ...cause, ...counts }],
    events: [toText('counted event name'), ...HOSTILE_NAMES].map((name) => ({ ...line, name, ...counts })),
    eventPlayers: new Map(HOSTILE_NAMES.map((name) => [name, 7_313])),
  };
}

interface PersonScope {
  readonly environmentId: string;
  readonly identityId: string;
}

/** Adds a message, a consent, a link and a refused link for a person, and their profile. */
export function seedTimeline({ rows }: SeededPortal, scope: PersonScope, toText: ToText): void {
  const { environmentId, identityId } = scope;
  const link: TimelineEntry = {
    entry: 'link',
    happenedMs: Date.now(),
    id: '1'.repeat(32),
    what: toText('link type'),
    name: 'refused',
    origin: toText('refusal reason'),
    identityId,
    kind: toText('first identity type'),
    otherId: 'f'.repeat(32),
    otherKind: toText('second identity type'),
    messageId: toText('refused message id'),
    traceId: toText('link trace id'),
    detail: '',
  };
  const of = (number: string, fields: Partial<TimelineEntry>) =>
    Object.assign({ ...link, id: number.repeat(32) }, fields);
  const texts = { what: toText('event type'), name: toText('event name'), origin: toText('event surface') };
  const detail = JSON.stringify({ properties: { [toText('property name')]: toText('property value') } });
  const consent = { what: toText('consent status'), name: 'current', origin: toText('consent source'), otherId: '' };
  rows.timelines[environmentId] = [
    link,
    of('2', { name: 'linked', origin: '', messageId: toText('linking message id') }),
    of('3', Object.assign({ entry: 'event', otherId: '', detail }, texts)),
    of('4', Object.assign({ entry: 'consent', messageId: '', traceId: toText('consent trace id') }, consent)),
  ];
  rows.profiles[environmentId] = {
    firstSeenMs: Date.now(),
    lastSeenMs: Date.now(),
    firstSurface: toText('first surface'),
    traits: JSON.stringify({ [toText('trait name')]: toText('trait value') }),
    events: 73_137,
    sessions: 73_131,
    lastSurface: toText('last surface'),
  };
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

function toAuditLine(environmentId: string, toText: ToText): AuditLine {
  return {
    happenedMs: Date.now() - 1_000,
    entryId: 'an entry',
    environmentId,
    kind: 'project',
    revision: 3,
    object: toText('audit object'),
    action: toText('audit action'),
    actor: toText('audit actor'),
    requestId: toText('audit request id'),
    address: toText('audit address'),
    detail: JSON.stringify({ name: toText('audit detail') }),
  };
}

function toEvents(toText: ToText): LiveEvent[] {
  const common = { outcome: 'stored', receivedAt: Date.now(), storedAt: null, traceId: TRACE_ID, reason: '' } as const;
  return [
    {
      kind: 'message',
      ...common,
      position: 'm-0-1',
      type: 'track',
      name: toText('live event name'),
      messageId: '0192f3a4-5b6c-7d8e-9f00-000000000002',
      eventTime: Date.now(),
      test: true,
      surface: toText('live event surface'),
      library: toText('live library'),
      libraryVersion: toText('live version'),
      ids: { anonymousId: toText('anonymous id'), userId: toText('user id') },
      pageUrl: toText('page URL'),
      identityKey: '7'.repeat(32),
      isCut: true,
      properties: JSON.stringify({ screen: toText('property value') }),
      traits: JSON.stringify({ email: toText('trait value') }),
    },
    {
      kind: 'rejection',
      ...common,
      outcome: 'rejected',
      position: 'r-0-1',
      code: toText('live rejection code'),
      field: toText('live rejection field'),
      surface: toText('live rejection surface'),
      library: toText('live rejection library'),
      libraryVersion: toText('live rejection version'),
      messageIndex: 0,
      sentence: toText('live rejection sentence'),
      fix: toText('live rejection fix'),
      docs: '/docs/messages',
    },
  ];
}

/** The redirect target of every form that uses the identity provider. */
export const PROVIDER_URL = 'https://id.example.test/authorize';

/** A provider that no user can sign in with. Tests check only the redirect to it. */
function createFakeProvider(): OpenIdProvider {
  return {
    label: 'Work',
    origins: [new URL(PROVIDER_URL).origin],
    authorization: async () => new URL(PROVIDER_URL),
    prove: async () => null,
  };
}

import type {
  ActivityLine,
  ActivityPage,
  ActivityPosition,
  ActivitySearch,
  AuditLine,
  AuditPosition,
  ConsentChange,
  ErasureLine,
  LinkDecision,
  MessageLine,
  MessagePage,
  MessagePosition,
  MessageSearch,
  MintLine,
  MintPosition,
  MintSigner,
  OpenErasures,
  Overview,
  PortalReads,
  Rejection,
  RejectionCount,
  RejectionStep,
  TokenLine,
} from '../reads/index.ts';
import { maskId } from '../reads/query-view.ts';

/** Rows by environment id. Audit entries are keyed by project id. */
export interface MemoryRows {
  readonly messages?: Readonly<Record<string, readonly MessageLine[]>>;
  readonly overviews?: Readonly<Record<string, Partial<Overview>>>;
  readonly rejections?: Readonly<Record<string, readonly RejectionCount[]>>;
  readonly steps?: Readonly<Record<string, readonly RejectionStep[]>>;
  readonly traces?: Readonly<Record<string, Readonly<Record<string, readonly Rejection[]>>>>;
  readonly erasures?: Readonly<Record<string, readonly ErasureLine[]>>;
  readonly mintSigners?: Readonly<Record<string, readonly MintSigner[]>>;
  /** Keyed by `chain 0x…`. */
  readonly activities?: Readonly<Record<string, readonly ActivityLine[]>>;
  readonly tokens?: Readonly<Record<string, TokenLine>>;
  readonly mints?: Readonly<Record<string, readonly MintLine[]>>;
  /** Raw ids by environment id and identity key. */
  readonly ids?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly links?: Readonly<Record<string, readonly LinkDecision[]>>;
  readonly consents?: Readonly<Record<string, readonly ConsentChange[]>>;
  readonly audit?: Readonly<Record<string, readonly AuditLine[]>>;
}

const NO_EVENTS: Overview = {
  events: [],
  clients: [],
  causes: [],
  accepted: [],
  rejected: [],
  players: null,
  eventPlayers: new Map(),
  delay: null,
  firstS: null,
  openErasures: 0,
  pendingMints: 0,
};

export function createMemoryReads(rows: MemoryRows = {}): PortalReads {
  return {
    messages: async (search) => toMessagePage(rows.messages?.[search.environmentId] ?? [], search),
    message: async ({ environmentId, messageId }) =>
      (rows.messages?.[environmentId] ?? []).filter((each) => each.messageId === messageId).map(toMasked),
    overview: async ({ environmentId }) => ({ ...NO_EVENTS, ...rows.overviews?.[environmentId] }),
    rejections: async ({ environmentId, code = '', field = '' }) =>
      (rows.rejections?.[environmentId] ?? []).filter(
        (each) => (code === '' || each.code === code) && (field === '' || each.field === field),
      ),
    rejectionSteps: async ({ environmentId }) => [...(rows.steps?.[environmentId] ?? [])],
    rejectionsOfTrace: async ({ environmentId, traceId }) => [...(rows.traces?.[environmentId]?.[traceId] ?? [])],
    consents: async ({ environmentId, identityIds }) =>
      (rows.consents?.[environmentId] ?? []).filter(({ identityId }) => identityIds.includes(identityId)),
    links: async ({ environmentId, identityIds }) =>
      (rows.links?.[environmentId] ?? []).filter(({ a, b }) =>
        [a, b].some(({ identityId }) => identityIds.includes(identityId)),
      ),
    ids: async ({ environmentId, identityIds, idAccess }) =>
      new Map(
        Object.entries(rows.ids?.[environmentId] ?? {})
          .filter(([identityId]) => identityIds.includes(identityId))
          .map(([identityId, id]) => [identityId, idAccess === 'raw ids' ? id : maskId(id)]),
      ),
    mints: async ({ environmentId, status, before, mintsMax }) =>
      (rows.mints?.[environmentId] ?? [])
        .filter((each) => status === '' || each.status === status)
        .filter((each) => before === undefined || byMint(each, before) < 0)
        .toSorted((a, b) => byMint(b, a))
        .slice(0, mintsMax),
    activities: async (search) => toActivityPage(rows.activities ?? {}, search),
    tokens: async (contracts) =>
      contracts.flatMap(
        ({ chain, contractAddress }) => rows.tokens?.[`${chain} ${contractAddress.toLowerCase()}`] ?? [],
      ),
    erasures: async (environmentId) => [...(rows.erasures?.[environmentId] ?? [])],
    openErasures: async (environmentIds) =>
      environmentIds.flatMap((id) => openOf(id, rows.erasures?.[id] ?? [])).toSorted((a, b) => a.oldestMs - b.oldestMs),
    mintSigners: async ({ environmentId }) => [...(rows.mintSigners?.[environmentId] ?? [])],
    receipt: async ({ environmentId, erasureId }) => {
      const found = rows.erasures?.[environmentId]?.find((each) => each.erasureId === erasureId);
      return found === undefined || found.state === 'waiting' ? null : { erasureId, environmentId };
    },
    audit: async ({ projectId, sinceMs, untilMs, before, entriesMax }) =>
      (rows.audit?.[projectId] ?? [])
        .filter(({ happenedMs }) => happenedMs >= sinceMs && happenedMs < untilMs)
        .filter((line) => before === undefined || byAuditPosition(line, before) < 0)
        .sort((a, b) => byAuditPosition(b, a))
        .slice(0, entriesMax),
  };
}

/** Simulates the view: filters, sorts and limits the rows. */
function toActivityPage(
  rows: Readonly<Record<string, readonly ActivityLine[]>>,
  { contracts, type, tokenId, sinceMs, untilMs, before, activitiesMax = 100 }: ActivitySearch,
): ActivityPage {
  const found = contracts
    .flatMap(({ chain, contractAddress }) => rows[`${chain} ${contractAddress.toLowerCase()}`] ?? [])
    .filter((each) => type === '' || each.type === type)
    .filter(({ assets }) => tokenId === '' || assets.some((asset) => asset.tokenId === tokenId))
    .filter(({ indexedMs }) => indexedMs >= sinceMs && indexedMs < untilMs)
    .filter((each) => before === undefined || byActivity(each, before) < 0)
    .toSorted((a, b) => byActivity(b, a));
  const activities = found.slice(0, activitiesMax);
  const last = activities.at(-1);
  const next =
    last !== undefined && found.length > activities.length ? { updatedUs: last.updatedUs, id: last.id } : null;
  return { activities, next, searchedSinceMs: 0 };
}

const byActivity = (a: ActivityPosition, b: ActivityPosition) => a.updatedUs - b.updatedUs || byText(a.id, b.id);

/** Ignores the time range. */
function toMessagePage(all: readonly MessageLine[], search: MessageSearch): MessagePage {
  const { sinceMs, type = '', name = '', surface = '', test, identityIds, idAccess, after, messagesMax = 100 } = search;
  const isAfterCursor = (each: MessageLine) => after === undefined || byMessage(each, after) < 0;
  const found = all
    .filter((each) => name === '' || each.name === name)
    .filter((each) => type === '' || each.type === type)
    .filter((each) => surface === '' || each.surface === surface)
    .filter((each) => test === undefined || each.isTest === test)
    .filter((each) => identityIds === undefined || identityIds.includes(each.identityId))
    .filter(isAfterCursor)
    .toSorted((a, b) => byMessage(b, a));
  const page = found.slice(0, messagesMax);
  const last = page.at(-1);
  const hasMore = last !== undefined && found.length > page.length;
  return {
    messages: idAccess === 'raw ids' ? page : page.map(toMasked),
    next: hasMore ? { happenedMs: last.happenedMs, messageId: last.messageId } : null,
    searchedSinceMs: sinceMs,
  };
}

const toMasked = (line: MessageLine): MessageLine => ({
  ...line,
  userId: maskId(line.userId),
  anonymousId: maskId(line.anonymousId),
});

const byMessage = (a: MessagePosition, b: MessagePosition) =>
  a.happenedMs - b.happenedMs || byText(a.messageId, b.messageId);

const byMint = (a: MintPosition, b: MintPosition) =>
  a.requestedMs - b.requestedMs || byText(a.referenceId, b.referenceId);
const byText = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1);

function openOf(environmentId: string, erasures: readonly ErasureLine[]): OpenErasures[] {
  const [oldest, ...others] = erasures
    .filter(({ visiblyErasedMs }) => visiblyErasedMs === null)
    .toSorted((a, b) => a.requestedMs - b.requestedMs);
  if (oldest === undefined) return [];
  const { requestedMs: oldestMs, erasureId: oldestId } = oldest;
  return [{ environmentId, count: 1 + others.length, oldestMs, oldestId }];
}

const byAuditPosition = (a: AuditPosition, b: AuditPosition) =>
  a.happenedMs - b.happenedMs || byText(a.entryId, b.entryId);

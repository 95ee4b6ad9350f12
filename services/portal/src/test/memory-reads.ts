import type {
  ActivityLine,
  ActivityPage,
  ActivityPosition,
  ActivitySearch,
  AlertCounts,
  AuditLine,
  AuditPosition,
  ErasureLine,
  MessageDetail,
  MessageLine,
  MessagePage,
  MessagePosition,
  MessageSearch,
  MintLine,
  MintPosition,
  MintSigner,
  OpenErasures,
  Overview,
  PersonProfile,
  PortalReads,
  Rejection,
  RejectionCause,
  TimelineEntry,
  TimelinePosition,
  TokenLine,
} from '../reads/index.ts';
import { maskId, toPage } from '../reads/query-view.ts';

/** Rows by environment id. Audit entries are keyed by project id. */
export interface MemoryRows {
  readonly messages?: Readonly<Record<string, readonly MessageLine[]>>;
  /** Details of messages by message id. */
  readonly details?: Readonly<Record<string, Partial<MessageDetail>>>;
  readonly overviews?: Readonly<Record<string, Partial<Overview>>>;
  readonly rejections?: Readonly<Record<string, readonly RejectionCause[]>>;
  readonly traces?: Readonly<Record<string, Readonly<Record<string, readonly Rejection[]>>>>;
  readonly erasures?: Readonly<Record<string, readonly ErasureLine[]>>;
  readonly mintSigners?: Readonly<Record<string, readonly MintSigner[]>>;
  /** Keyed by `chain 0x…`. */
  readonly activities?: Readonly<Record<string, readonly ActivityLine[]>>;
  readonly tokens?: Readonly<Record<string, TokenLine>>;
  readonly mints?: Readonly<Record<string, readonly MintLine[]>>;
  /** Raw ids by environment id and identity key. */
  readonly ids?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly timelines?: Readonly<Record<string, readonly TimelineEntry[]>>;
  /** The profile of all people in an environment. */
  readonly profiles?: Readonly<Record<string, PersonProfile>>;
  readonly audit?: Readonly<Record<string, readonly AuditLine[]>>;
  readonly alertCounts?: Readonly<Record<string, AlertCounts>>;
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
    message: async ({ environmentId, messageId, idAccess, safeProperties }) =>
      (rows.messages?.[environmentId] ?? [])
        .filter((each) => each.messageId === messageId)
        .map((line) => {
          const detail = { ...NO_DETAIL, ...line, ...rows.details?.[messageId] };
          if (idAccess === 'raw ids') return detail;
          const properties = Object.entries(JSON.parse(detail.properties || '{}')).filter(([name]) =>
            safeProperties.includes(name),
          );
          return {
            ...detail,
            ...toMasked(line),
            ...NO_DETAIL,
            properties: JSON.stringify(Object.fromEntries(properties)),
          };
        }),
    messageCounts: async (search) => {
      const counts = new Map<number, number>();
      for (const { happenedMs } of toMessagePage(rows.messages?.[search.environmentId] ?? [], search).lines) {
        const stepMs = happenedMs - ((happenedMs - search.sinceMs) % search.stepMs);
        counts.set(stepMs, (counts.get(stepMs) ?? 0) + 1);
      }
      return [...counts].map(([stepMs, messages]) => ({ stepMs, messages }));
    },
    overview: async ({ environmentId }) => ({ ...NO_EVENTS, ...rows.overviews?.[environmentId] }),
    rejections: async ({ environmentId, code = '', field = '' }) => {
      const causes = (rows.rejections?.[environmentId] ?? []).filter(
        (each) => (code === '' || each.code === code) && (field === '' || each.field === field),
      );
      const totalTrend = new Map<number, number>();
      for (const { trend } of causes)
        for (const [step, errors] of trend) totalTrend.set(step, (totalTrend.get(step) ?? 0) + errors);
      const totalErrors = causes.reduce((sum, { errors }) => sum + errors, 0);
      return { causes, totalCauses: causes.length, totalErrors, totalTrend };
    },
    rejectionsOfTrace: async ({ environmentId, traceId }) => [...(rows.traces?.[environmentId]?.[traceId] ?? [])],
    timeline: async ({ environmentId, identityIds, show, after, linesMax }) => {
      const found = (rows.timelines?.[environmentId] ?? [])
        .filter(({ identityId, otherId }) => identityIds.includes(identityId) || identityIds.includes(otherId))
        .filter(({ entry }) => ENTRIES_OF[show].includes(entry))
        .filter((each) => after === undefined || byEntry(each, after) < 0);
      return toPage(found.toSorted((a, b) => byEntry(b, a)).slice(0, linesMax), linesMax);
    },
    profile: async ({ environmentId, identityIds }) =>
      identityIds.some((id) => rows.ids?.[environmentId]?.[id] !== undefined)
        ? (rows.profiles?.[environmentId] ?? null)
        : null,
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
    erasure: async ({ environmentId, erasureId }) =>
      rows.erasures?.[environmentId]?.find((each) => each.erasureId === erasureId) ?? null,
    receipt: async ({ environmentId, erasureId }) => {
      const found = rows.erasures?.[environmentId]?.find((each) => each.erasureId === erasureId);
      if (found === undefined || found.state === 'waiting') return null;
      return { erasureId, environmentId };
    },
    alertCounts: async ({ environmentIds }) =>
      new Map(Object.entries(rows.alertCounts ?? {}).filter(([id]) => environmentIds.includes(id))),
    audit: async ({ projectId, sinceMs, untilMs, before, actionPrefix = '', entriesMax }) =>
      (rows.audit?.[projectId] ?? [])
        .filter(({ action }) => action.startsWith(actionPrefix))
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
    lines: idAccess === 'raw ids' ? page : page.map(toMasked),
    next: hasMore ? { happenedMs: last.happenedMs, messageId: last.messageId } : null,
    searchedSinceMs: sinceMs,
  };
}

const toMasked = (line: MessageLine): MessageLine => ({
  ...line,
  traceId: '',
  userId: maskId(line.userId),
  anonymousId: maskId(line.anonymousId),
});

const NO_DETAIL = Object.fromEntries(
  'fromId fromType toId toType deviceId sessionId userAgent locale timezone screen pageUrl pageTitle pageReferrer properties traits'
    .split(' ')
    .map((name) => [name, '']),
) as Omit<MessageDetail, keyof MessageLine>;

const byMessage = (a: MessagePosition, b: MessagePosition) =>
  a.happenedMs - b.happenedMs || byText(a.messageId, b.messageId);

const ENTRIES_OF = {
  '': ['event', 'link', 'consent'],
  events: ['event'],
  identity: ['link'],
  consent: ['consent'],
  history: ['link', 'consent'],
};

const byEntry = (a: TimelinePosition, b: TimelinePosition) => a.happenedMs - b.happenedMs || byText(a.id, b.id);

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

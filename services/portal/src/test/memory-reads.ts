import type {
  AuditLine,
  AuditPlace,
  ConsentChange,
  ErasureLine,
  LinkDecision,
  MessageLine,
  MintLine,
  PortalReads,
  Rejection,
  RejectionCount,
  RejectionStep,
} from '../reads/index.ts';
import { maskId } from '../reads/masked.ts';

/** What stands in ClickHouse of each environment, and of each project what was done. */
export interface MemoryRows {
  readonly messages?: Readonly<Record<string, readonly MessageLine[]>>;
  readonly rejections?: Readonly<Record<string, readonly RejectionCount[]>>;
  readonly steps?: Readonly<Record<string, readonly RejectionStep[]>>;
  readonly traces?: Readonly<Record<string, Readonly<Record<string, readonly Rejection[]>>>>;
  readonly erasures?: Readonly<Record<string, readonly ErasureLine[]>>;
  readonly mints?: Readonly<Record<string, readonly MintLine[]>>;
  /** By identity of the environment: ids as clients sent them. */
  readonly ids?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly links?: Readonly<Record<string, readonly LinkDecision[]>>;
  readonly consents?: Readonly<Record<string, readonly ConsentChange[]>>;
  readonly audit?: Readonly<Record<string, readonly AuditLine[]>>;
}

/** Reads of rows in memory, by environments and projects whole; what no page of a test asks for is empty. */
export function createMemoryReads(rows: MemoryRows = {}): PortalReads {
  return {
    messages: async ({ environmentId, sinceMs, name = '', identityIds, sight }) => ({
      messages: (rows.messages?.[environmentId] ?? [])
        .filter((each) => name === '' || each.name === name)
        .filter((each) => identityIds === undefined || identityIds.includes(each.identityId))
        .map((each) =>
          sight === 'raw ids' ? each : { ...each, userId: maskId(each.userId), anonymousId: maskId(each.anonymousId) },
        ),
      ...{ next: null, searchedSinceMs: sinceMs },
    }),
    message: async () => [],
    rejections: async ({ environmentId, code = '', field = '' }) =>
      (rows.rejections?.[environmentId] ?? []).filter(
        (each) => (code === '' || each.code === code) && (field === '' || each.field === field),
      ),
    rejectionSteps: async ({ environmentId }) => [...(rows.steps?.[environmentId] ?? [])],
    rejectionsOfTrace: async ({ environmentId, traceId }) => [...(rows.traces?.[environmentId]?.[traceId] ?? [])],
    minuteCounts: async () => [],
    consents: async ({ environmentId, identityIds }) =>
      (rows.consents?.[environmentId] ?? []).filter(({ identityId }) => identityIds.includes(identityId)),
    links: async ({ environmentId, identityIds }) =>
      (rows.links?.[environmentId] ?? []).filter(({ a, b }) =>
        [a, b].some(({ identityId }) => identityIds.includes(identityId)),
      ),
    ids: async ({ environmentId, identityIds, sight }) =>
      new Map(
        Object.entries(rows.ids?.[environmentId] ?? {})
          .filter(([identityId]) => identityIds.includes(identityId))
          .map(([identityId, id]) => [identityId, sight === 'raw ids' ? id : maskId(id)]),
      ),
    mints: async ({ environmentId, status }) =>
      (rows.mints?.[environmentId] ?? []).filter((each) => status === '' || each.status === status),
    erasures: async (environmentId) => [...(rows.erasures?.[environmentId] ?? [])],
    receipt: async ({ environmentId, erasureId }) => {
      const found = rows.erasures?.[environmentId]?.find((each) => each.erasureId === erasureId);
      return found === undefined || found.state === 'waiting' ? null : { erasureId, environmentId };
    },
    audit: async ({ projectId, sinceMs, untilMs, before, entriesMax }) =>
      (rows.audit?.[projectId] ?? [])
        .filter(({ happenedMs }) => happenedMs >= sinceMs && happenedMs < untilMs)
        .filter((line) => before === undefined || byPlace(line, before) < 0)
        .sort((a, b) => byPlace(b, a))
        .slice(0, entriesMax),
  };
}

const byPlace = (a: AuditPlace, b: AuditPlace) =>
  a.happenedMs - b.happenedMs || (a.entryId === b.entryId ? 0 : a.entryId < b.entryId ? -1 : 1);

import type { AuditLine, ErasureLine, PortalReads, Rejection, RejectionCount, RejectionStep } from '../reads/index.ts';

/** What stands in ClickHouse of each environment, and of each project what was done. */
export interface MemoryRows {
  readonly rejections?: Readonly<Record<string, readonly RejectionCount[]>>;
  readonly steps?: Readonly<Record<string, readonly RejectionStep[]>>;
  readonly traces?: Readonly<Record<string, Readonly<Record<string, readonly Rejection[]>>>>;
  readonly erasures?: Readonly<Record<string, readonly ErasureLine[]>>;
  readonly audit?: Readonly<Record<string, readonly AuditLine[]>>;
}

/** Reads of rows in memory, by environments and projects whole; what no page of a test asks for is empty. */
export function createMemoryReads(rows: MemoryRows = {}): PortalReads {
  return {
    messages: async ({ sinceMs }) => ({ messages: [], next: null, searchedSinceMs: sinceMs }),
    message: async () => [],
    rejections: async ({ environmentId, code = '', field = '' }) =>
      (rows.rejections?.[environmentId] ?? []).filter(
        (each) => (code === '' || each.code === code) && (field === '' || each.field === field),
      ),
    rejectionSteps: async ({ environmentId }) => [...(rows.steps?.[environmentId] ?? [])],
    rejectionsOfTrace: async ({ environmentId, traceId }) => [...(rows.traces?.[environmentId]?.[traceId] ?? [])],
    minuteCounts: async () => [],
    consents: async () => [],
    links: async () => [],
    ids: async () => new Map(),
    erasures: async (environmentId) => [...(rows.erasures?.[environmentId] ?? [])],
    receipt: async ({ environmentId, erasureId }) => {
      const found = rows.erasures?.[environmentId]?.find((each) => each.erasureId === erasureId);
      return found === undefined || found.state === 'waiting' ? null : { erasureId, environmentId };
    },
    audit: async ({ projectId, sinceMs, untilMs, entriesMax }) =>
      (rows.audit?.[projectId] ?? [])
        .filter(({ happenedMs }) => happenedMs >= sinceMs && happenedMs < untilMs)
        .sort((a, b) => b.happenedMs - a.happenedMs)
        .slice(0, entriesMax),
  };
}

import {
  type Erasure,
  type ErasurePage,
  type ErasureProgress,
  type ErasureReceipt,
  type ErasureRecords,
  type ErasureRequest,
  namedKeys,
  type StoredFence,
  stateOf,
} from '../../records.ts';

const completenessOf = ({ physicallyErasedAt, logExpiredAt }: ErasureReceipt) =>
  Number(physicallyErasedAt !== null) + Number(logExpiredAt !== null);

function compareErasures({ request: one }: Erasure, { request: other }: Erasure): number {
  return other.requestedAt - one.requestedAt || Buffer.compare(other.erasureId, one.erasureId);
}

function pageOf(erasures: Erasure[], { environmentId, state, after, erasuresMax }: ErasurePage): Erasure[] {
  return erasures
    .filter(({ request }) => environmentId === undefined || request.environmentId === environmentId)
    .filter(({ receipt }) => state === undefined || stateOf(receipt) === state)
    .sort(compareErasures)
    .filter(({ request }) => {
      if (after === undefined) return true;
      const { requestedAt, erasureId } = request;
      if (requestedAt !== after.requestedAt) return requestedAt < after.requestedAt;
      return Buffer.compare(erasureId, after.erasureId) < 0;
    })
    .slice(0, erasuresMax);
}

export function openMemoryErasureRecords(wallClockMs: () => number = Date.now): ErasureRecords {
  const fences = new Map<string, StoredFence>();
  const receipts = new Map<string, ErasureReceipt>();
  const progress = createProgress();
  let parts = 0;
  const oldestFirst = (rows: ErasureReceipt[]) => rows.sort((one, other) => one.acceptedAt - other.acceptedAt);
  return {
    ...progress,
    ...createRequests(receipts, progress.readProgress),
    async putFences(put) {
      const part = String(parts++);
      if (put.some(({ key }) => key.every((byte) => byte === 0))) throw new RangeError('the key must not be zero');
      for (const fence of put) {
        const name = `${fence.environmentId} ${fence.key.toString('hex')}`;
        if ((fences.get(name)?.cutoffMs ?? Number.NEGATIVE_INFINITY) <= fence.cutoffMs)
          fences.set(name, { ...fence, fencedAtMs: wallClockMs(), part });
      }
    },
    async *readFences({ knownParts } = {}) {
      for (const fence of fences.values()) if (knownParts?.has(fence.part) !== true) yield fence;
    },
    async putReceipts(put) {
      for (const receipt of put) {
        const id = receipt.erasureId.toString('hex');
        const known = receipts.get(id);
        if (known === undefined || completenessOf(known) <= completenessOf(receipt)) receipts.set(id, receipt);
      }
    },
    readReceipt: async (erasureId) => receipts.get(erasureId.toString('hex')) ?? null,
    readOpenReceipts: async () => oldestFirst([...receipts.values()].filter((receipt) => completenessOf(receipt) < 2)),
    readFinished: async () => new Set(receipts.keys()),
    ready: async () => true,
    close: async () => {},
  };
}

const withoutLinks = ({ links: _, ...request }: ErasureRequest): ErasureRequest => request;

type RequestMethods =
  | 'addRequests'
  | 'putRequests'
  | 'putFound'
  | 'readUnfinished'
  | 'readOpenSince'
  | 'readEnvironments'
  | 'readRequests'
  | 'readErasures';

function createRequests(
  receipts: ReadonlyMap<string, ErasureReceipt>,
  readProgress: ErasureRecords['readProgress'],
): Pick<ErasureRecords, RequestMethods> {
  const requests = new Map<string, ErasureRequest>();
  const listAll = (): Erasure[] =>
    [...requests].map(([id, request]) => ({ request, receipt: receipts.get(id) ?? null }));
  return {
    async addRequests(added) {
      for (const request of added) {
        const id = request.erasureId.toString('hex');
        if (!requests.has(id)) requests.set(id, request);
      }
    },
    async putRequests(put) {
      for (const request of put) requests.set(request.erasureId.toString('hex'), request);
    },
    async readUnfinished() {
      const unfinished = [...requests].filter(([id]) => !receipts.has(id)).map(([, request]) => withoutLinks(request));
      return unfinished.sort((one, other) => one.requestedAt - other.requestedAt);
    },
    async putFound(found) {
      const started = new Set((await readProgress()).map(({ erasureId }) => erasureId.toString('hex')));
      for (const request of found) {
        const id = request.erasureId.toString('hex');
        if (!started.has(id) && !receipts.has(id)) requests.set(id, request);
      }
    },
    async readOpenSince(sinceMs, identities, onLink) {
      const isNamed = (request: ErasureRequest) =>
        identities.some(
          (identity) =>
            identity.environmentId === request.environmentId &&
            [...namedKeys(request)].some((key) => key.equals(identity.key)),
        );
      const isOpen = ({ receipt }: Erasure) => receipt === null || receipt.visiblyErasedAt >= sinceMs;
      const found = listAll().filter((erasure) => isOpen(erasure) && isNamed(erasure.request));
      for (const { request } of found) for (const _ of request.links ?? []) onLink?.();
      return found;
    },
    readEnvironments: async () => [...new Set([...requests.values()].map(({ environmentId }) => environmentId))],
    readRequests: async (ids) =>
      ids.flatMap((id) => {
        const request = requests.get(id.toString('hex'));
        return request === undefined ? [] : [withoutLinks(request)];
      }),
    readErasures: async (page) =>
      pageOf(listAll(), page).map(({ request, receipt }) => ({ request: withoutLinks(request), receipt })),
  };
}

function createProgress(): Pick<ErasureRecords, 'putProgress' | 'readProgress' | 'dropProgress'> {
  const progress = new Map<string, ErasureProgress>();
  return {
    async putProgress(put) {
      for (const one of put) progress.set(`${one.batchId.toString('hex')} ${one.erasureId.toString('hex')}`, one);
    },
    readProgress: async () => [...progress.values()],
    async dropProgress(batchId) {
      for (const [name, one] of progress) if (one.batchId.equals(batchId)) progress.delete(name);
    },
  };
}

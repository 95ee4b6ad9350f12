import type { MintRequestRecord } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import type { Quotas } from '../accept.ts';
import { createAcceptMints } from '../accept.ts';
import { digestOf, type MintAsset } from '../asset.ts';
import type { MintClaims } from '../claims.ts';
import { type MintState, toRequestedState } from '../states.ts';
import { catchUpMints, type MintLog, type MintView } from '../view.ts';

export const PROJECT_ID = 'p';
export const COLLECTION = { chain: 'demo-chain', contractAddress: `0x${'c0'.repeat(20)}` };
export const SIGNERS: readonly string[] = ['51', '52'].map((byte) => `0x${byte.repeat(20)}`);

export type PublishOutcome =
  | 'stored'
  /** Stored, but the acknowledgement was lost. */
  | 'unacknowledged'
  /** Rejected by the broker, not stored. */
  | 'rejected'
  /** Stored only when the world is flushed, and never acknowledged. */
  | 'delayed'
  /** The process is killed before publishing, or between publishing and confirming the claims. */
  | 'killed unpublished'
  | 'killed published';

export const PUBLISH_OUTCOMES: readonly PublishOutcome[] = [
  'stored',
  'unacknowledged',
  'rejected',
  'delayed',
  'killed unpublished',
  'killed published',
];

/** A simulated mint request. An asset's variants differ in their token id. */
export interface SimulatedRequest {
  readonly assets: readonly { readonly referenceId: string; readonly variant: number }[];
  readonly signer: number;
  readonly outcome: PublishOutcome;
}

interface Attempt {
  readonly state: MintState;
  readonly digest: string;
}

export interface RequestResult {
  readonly request: SimulatedRequest;
  readonly result: 'accepted' | 'unknown' | readonly string[];
}

const assetOf = ({ referenceId, variant }: SimulatedRequest['assets'][number]): MintAsset => ({
  referenceId,
  ownerAddress: `0x${'ab'.repeat(20)}`,
  tokenId: String(variant),
  amount: null,
  metadata: null,
});

interface Logs {
  readonly requests: readonly MintRequestRecord[][];
  readonly states: MintState[];
}

function createLogs({ requests, states }: Logs) {
  const logOf = (topic: string, partitions: () => readonly (readonly MintState[])[]): MintLog => ({
    topic,
    bounds: async () => partitions().map((list, partition) => ({ partition, start: 0, end: list.length })),
    async *read({ partition, start, end }) {
      for (let offset = start; offset < end; offset++) yield { offset, state: partitions()[partition]![offset]! };
    },
  });
  return {
    states: logOf('states', () => [states]),
    requests: logOf('requests', () => requests.map((list) => list.map(toRequestedState))),
  };
}

/** Simulates one minter per signer. Minters share no state. */
function createMinters({ requests, states }: Logs) {
  const minters = SIGNERS.map(() => {
    return { read: 0, attempts: new Map<string, Attempt>(), latest: new Map<string, string>() };
  });
  const minted: Attempt[] = [];
  const append = (attempt: Attempt, change: Partial<MintState>) => {
    const state = { ...attempt.state, revision: attempt.state.revision + 1, ...change };
    states.push(state);
    return { ...attempt, state };
  };
  return {
    minted,
    /** Makes a minter read its next request. The first request for a reference id wins until its attempt fails. */
    read(signer: number): void {
      const minter = minters[signer]!;
      const record = requests[signer]![minter.read];
      if (record === undefined) return;
      minter.read++;
      const state = toRequestedState(record);
      const current = minter.attempts.get(minter.latest.get(state.referenceId) ?? '');
      if (minter.attempts.has(state.attemptId) || (current !== undefined && current.state.status !== 'failed')) return;
      const attempt = append({ state, digest: digestOf({ ...state, metadata: null }) }, {});
      minter.attempts.set(state.attemptId, attempt);
      minter.latest.set(state.referenceId, state.attemptId);
    },
    end(signer: number, referenceId: string, status: 'succeeded' | 'failed'): void {
      const minter = minters[signer]!;
      const attempt = minter.attempts.get(minter.latest.get(referenceId) ?? '');
      if (attempt?.state.status !== 'pending') return;
      const ended = append(attempt, { status, stage: 'settled' });
      minter.attempts.set(ended.state.attemptId, ended);
      if (status === 'succeeded') minted.push(ended);
    },
    attempts: () => minters.flatMap(({ attempts }) => [...attempts.values()]),
    hasUnread: () => minters.some(({ read }, signer) => read < requests[signer]!.length),
  };
}

/** Simulates the log, the minters and the processes that accept requests, but not the claim store under test. */
export function createMintWorld({ claims, view, quotas }: { claims: MintClaims; view: MintView; quotas: Quotas }) {
  const requests: MintRequestRecord[][] = SIGNERS.map(() => []);
  const states: MintState[] = [];
  const inFlight: (readonly MintRequestRecord[])[] = [];
  const results: RequestResult[] = [];
  const logs = createLogs({ requests, states });
  const store = (records: readonly MintRequestRecord[]) => {
    for (const record of records) requests[SIGNERS.indexOf(`0x${record.signer.toString('hex')}`)]!.push(record);
  };
  const isLogApplied = async () => {
    const { offsets } = await view.progress();
    // No records may be in flight, because a claim lapses long after every producer has given up.
    return inFlight.length === 0 && requests.every((list, at) => offsets.get(`requests/${at}`) === list.length);
  };
  const publish = (outcome: PublishOutcome) => async (records: readonly MintRequestRecord[]) => {
    if (outcome === 'delayed') inFlight.push(records);
    else if (outcome === 'stored' || outcome === 'unacknowledged' || outcome === 'killed published') store(records);
    if (outcome !== 'stored') throw new Error(outcome);
  };
  return {
    ...createMinters({ requests, states }),
    results,
    async request(request: SimulatedRequest): Promise<void> {
      const policy = { kind: 'mint', perSecond: 1_000_000, burst: 10_000_000 } as const;
      const parts = { claims, quotas, policy, isLogApplied, lapseMs: -1, publish: publish(request.outcome) };
      const sharedFields = {
        collection: COLLECTION,
        projectId: PROJECT_ID,
        environmentId: 'e',
        traceId: '0'.repeat(32),
      };
      try {
        const requireSigner = async () => SIGNERS[request.signer]!;
        const wanted = { ...sharedFields, requireSigner, assets: request.assets.map(assetOf) };
        await createAcceptMints(parts)(wanted);
        results.push({ request, result: 'accepted' });
      } catch (fault) {
        const isConflict = fault instanceof PublicError && fault.code === 'CONFLICT_ERROR';
        results.push({ request, result: isConflict ? (fault.details?.values as string[]) : 'unknown' });
      }
    },
    flush: () => {
      for (const records of inFlight.splice(0)) store(records);
    },
    catchUp: () => catchUpMints(view, logs),
    digestOf: (asset: SimulatedRequest['assets'][number]) => digestOf(assetOf(asset)),
  };
}

export type MintWorld = ReturnType<typeof createMintWorld>;

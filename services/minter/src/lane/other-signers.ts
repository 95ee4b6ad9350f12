import type { MintRequestRecord } from '@playline/contracts';
import type { MintLog, SignerLane } from '../ports.ts';
import { toReferenceKey } from './mint-ledger.ts';

/** How often a collection is looked at again that another signer still works for. */
const LOOK_AGAIN_MS = 5_000;

interface Known {
  readonly held: ReadonlySet<string>;
  readonly isDraining: boolean;
  readonly lookedAtMs: number;
}

/**
 * What signers that a collection had before have minted of it: a reference id is of the collection, whoever signs. While one
 * of them still has something pending, nothing new is begun here.
 */
export class OtherSigners {
  readonly #parts: { readonly log: MintLog; readonly lane: SignerLane; readonly clock: { monotonicMs(): number } };
  readonly #known = new Map<string, Known>();

  constructor(parts: { readonly log: MintLog; readonly lane: SignerLane; readonly clock: { monotonicMs(): number } }) {
    this.#parts = parts;
  }

  /** Looks at collections that nothing is known of yet. */
  async know(requests: readonly Pick<MintRequestRecord, 'contractAddress'>[]): Promise<void> {
    for (const { contractAddress } of requests)
      if (!this.#known.has(contractAddress.toString('hex'))) await this.#look(contractAddress);
  }

  isHeld(request: Pick<MintRequestRecord, 'contractAddress' | 'referenceId'>): boolean {
    return this.#known.get(request.contractAddress.toString('hex'))?.held.has(toReferenceKey(request)) ?? false;
  }

  async isDraining(contractAddress: Buffer): Promise<boolean> {
    const { clock } = this.#parts;
    const known = this.#known.get(contractAddress.toString('hex'));
    if (known?.isDraining === false) return false;
    if (known !== undefined && clock.monotonicMs() - known.lookedAtMs < LOOK_AGAIN_MS) return true;
    return (await this.#look(contractAddress)).isDraining;
  }

  async #look(contractAddress: Buffer): Promise<Known> {
    const { log, lane, clock } = this.#parts;
    const lookedAtMs = clock.monotonicMs();
    const states = await log.statesOfOthers(lane, contractAddress);
    const last = new Map(states.map((state) => [state.attemptId.toString('hex'), state]));
    const standing = [...last.values()].filter(({ status }) => status !== 'failed');
    const known = {
      held: new Set(standing.map(toReferenceKey)),
      isDraining: standing.some(({ status }) => status === 'pending'),
      lookedAtMs,
    };
    this.#known.set(contractAddress.toString('hex'), known);
    return known;
  }
}

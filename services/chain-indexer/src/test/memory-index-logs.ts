import type { ActivityRecord, IndexProgressRecord, TokenRecord } from '@playline/contracts';
import { FencedFault, type IndexBatch, type IndexLogs } from '../index-log.ts';

/** What happens to a batch. Outcomes other than `published` simulate a crash of the process or the brokers. */
export type PublishOutcome = 'published' | 'lost' | 'published without a response';

/** In-memory chain logs with the guarantees of brokers: one writer per chain, and atomic batches. */
export class MemoryIndexLogs implements IndexLogs {
  readonly activities: ActivityRecord[] = [];
  readonly tokens: TokenRecord[] = [];
  batches = 0;
  outcome: () => PublishOutcome = () => 'published';
  private readonly owners = new Map<string, number>();
  private readonly progress = new Map<string, IndexProgressRecord>();

  async open(chain: string) {
    const owner = (this.owners.get(chain) ?? 0) + 1;
    this.owners.set(chain, owner);
    return {
      progress: this.progress.get(chain) ?? null,
      readTokens: async () => {
        const tokensOfChain = this.tokens.filter((token) => token.chain === chain);
        return new Set(tokensOfChain.map(({ contractAddress }) => `0x${contractAddress.toString('hex')}`));
      },
      publish: async (batch: IndexBatch) => {
        await Promise.resolve();
        if (this.owners.get(chain) !== owner) throw new FencedFault('fenced');
        const outcome = this.outcome();
        if (outcome !== 'lost') this.append(chain, batch);
        if (outcome !== 'published') throw new Error(`the batch is ${outcome}`);
      },
      close: async () => {},
    };
  }

  async readProgress(chain: string) {
    return this.progress.get(chain) ?? null;
  }

  private append(chain: string, { activities, tokens, progress }: IndexBatch): void {
    this.activities.push(...activities);
    this.tokens.push(...tokens);
    this.progress.set(chain, progress);
    this.batches++;
  }
}

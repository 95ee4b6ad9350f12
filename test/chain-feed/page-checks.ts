import type { FeedChain } from './feed-rig.ts';
import type { Findings } from './findings.ts';
import type { ServedPage } from './page-client.ts';
import type { WatermarkWatch } from './watermark-watch.ts';

export interface ServedVersion {
  readonly chain: string;
  readonly id: string;
  readonly us: number;
  readonly text: string;
}

export class PageChecks {
  readonly #versions = new Map<string, ServedVersion>();
  readonly #watermarks: Pick<WatermarkWatch, 'readGreatest'>;
  readonly #findings: Findings;
  pages = 0;
  backwardWalks = 0;

  constructor(watermarks: Pick<WatermarkWatch, 'readGreatest'>, findings: Findings) {
    this.#watermarks = watermarks;
    this.#findings = findings;
  }

  get versions(): Iterable<ServedVersion> {
    return this.#versions.values();
  }

  /** Checks a page. Reads the watermark after the response, so it is at least as high as the page's watermark. */
  async check({ name: chain, partition }: FeedChain, { rows }: ServedPage): Promise<void> {
    this.pages++;
    for (const row of rows) {
      const key = `${chain} ${row.id} ${row.us}`;
      const before = this.#versions.get(key);
      if (before === undefined) this.#versions.set(key, { chain, ...row });
      else if (before.text !== row.text)
        this.#findings.add('correct content', `${key} was ${before.text} and is now ${row.text}`);
    }
    for (const [index, { us }] of rows.entries())
      if (index > 0 && us <= rows[index - 1]!.us)
        this.#findings.add('in order', `${us} was returned after ${rows[index - 1]!.us}`);
    const last = rows.at(-1);
    if (last === undefined) return;
    const greatest = await this.#watermarks.readGreatest(partition);
    if (last.us > greatest)
      this.#findings.add('below the watermark', `${chain} ${last.us} is ${last.us - greatest} µs above the watermark`);
  }
}

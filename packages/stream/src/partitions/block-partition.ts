import { waitAtMost } from '@playline/stores';
import type { StreamRecord } from '../ports.ts';
import { addToBlock, type Block, createBlock, noteNamed, toIntent } from './block.ts';
import type { BlockPartitionOptions } from './block-writer.ts';
import { BlockWriter } from './block-writer.ts';
import { type CommitNote, type Intent, type IntentPolicy, KEEP_INTENTS, NO_NOTE } from './intent.ts';
import { type LogMark, MarkTrail } from './log-mark.ts';
import { Fenced } from './log-partition.ts';
import {
  commitOffset,
  createOwnedPartition,
  type OwnedPartition,
  Standstill,
  stopPartition,
} from './owned-partition.ts';
import { Ownership, OwnershipOver } from './ownership.ts';
import type { PartitionWorker } from './partition-worker.ts';

/** One block is written while the next is filled; with more waiting, fetching only costs memory. */
const BLOCKS_WAITING_MAX = 2;

/**
 * What a partition does with records that come.
 * - `taking`: they are taken, and fetched.
 * - `full`: fetched records are taken, but no more are fetched until a block is written.
 * - `standing`: after a fault that waiting does not end. None are taken; the named block is tried again, rarely.
 * - `draining`: none are taken. A named block is finished; the others are left to the next owner.
 *
 * `taking` and `full` follow each other; a fault turns either into `standing`, which goes on as `taking`; `draining` is
 * the last.
 */
type Intake = 'taking' | 'full' | 'standing' | 'draining';

/** Timer that cuts the block being filled by its age; `due` when it ended while another block was being written. */
type Age = NodeJS.Timeout | 'due' | null;

/**
 * One partition of a block consumer: records become blocks, blocks become rows once each.
 *
 * The order that makes it once: (1) the block's end is committed as an intent beside its start, (2) the block is
 * written under a token made of start and end, (3) its end is committed. An owner that takes over after (1) reads
 * exactly the same records and writes them under the same token, and the store drops one of the two. A write needs (1),
 * and (1) is refused to all but the present owner.
 */
export class BlockPartition implements PartitionWorker {
  readonly #options: BlockPartitionOptions;
  readonly #ownership: Ownership;
  readonly #owned: OwnedPartition;
  readonly #standstill: Standstill;
  readonly #writer: BlockWriter;
  /** Cut blocks in the order of the log; the first is being written. */
  readonly #queue: Block[] = [];
  #filling: Block | null = null;
  #next: number;
  #done: number;
  #trail = new MarkTrail(null);
  /** The note committed with `#done`. */
  #note: CommitNote = NO_NOTE;
  readonly #intents: IntentPolicy;
  #age: Age = null;
  #working: Promise<void> | null = null;
  #intake: Intake = 'taking';

  constructor(options: BlockPartitionOptions) {
    this.#options = options;
    this.#intents = options.intents ?? KEEP_INTENTS;
    const { log, metrics, logger } = options;
    this.#ownership = new Ownership(options.waits?.attempt);
    this.#owned = createOwnedPartition({ log, metrics, logger, ownership: this.#ownership });
    this.#standstill = new Standstill(this.#owned, options.waits?.standstill);
    this.#writer = new BlockWriter(options, this.#owned, {
      confirm: (block) => this.#name(block),
      logDecidedAtMs: () => this.#note.decidedAtMs,
    });
    const { committed } = log;
    this.#next = committed;
    this.#done = committed;
    try {
      this.#note = this.#intents.parse(log.metadata, committed);
      this.#trail = new MarkTrail(this.#note.mark);
      if (this.#note.intent !== null) this.#filling = this.#openBlock(this.#note.intent);
    } catch (fault) {
      this.#intake = 'standing';
      stopPartition(this.#owned, this.#done, fault);
    }
  }

  get next(): number {
    return this.#next;
  }

  get done(): number {
    return this.#done;
  }

  get lastRead(): LogMark | null {
    return this.#trail.last;
  }

  get settled(): number {
    const isBusy = this.#working !== null || this.#queue.length > 0 || this.#filling !== null;
    return isBusy || this.#ownership.over || this.#intake === 'standing' ? this.#done : this.#next;
  }

  get writingSinceMs(): number | null {
    return this.#writer.sinceMs;
  }

  get oldestUnwrittenMs(): number | null {
    return (this.#queue[0] ?? this.#filling)?.firstTimestampMs ?? null;
  }

  get healthy(): boolean {
    return this.#intake !== 'standing';
  }

  get hindrance(): string | null {
    return this.#owned.hindrance.sentence;
  }

  accept(records: readonly StreamRecord[], end: number, batches: readonly LogMark[] = []): void {
    if (this.#ownership.over || this.#intake === 'draining' || this.#intake === 'standing') return;
    this.#trail.add(batches);
    try {
      this.#take(records, end);
    } catch (fault) {
      void this.#standAside(fault);
    }
  }

  #take(records: readonly StreamRecord[], end: number) {
    for (const record of records) {
      if (record.offset < this.#next) continue;
      // the named end lies in a gap of the log
      if (this.#filling?.recoverTo != null && record.offset >= this.#filling.recoverTo)
        this.#cut(this.#filling.recoverTo);
      this.#filling ??= this.#openBlock(null);
      addToBlock(this.#filling, record);
      this.#next = record.offset + 1;
      if (this.#isFull(this.#filling)) this.#cut(this.#next);
    }
    this.#next = Math.max(this.#next, end);
    const recoverTo = this.#filling?.recoverTo;
    if (recoverTo != null && this.#next >= recoverTo) this.#cut(recoverTo);
  }

  async drain(budgetMs: number): Promise<void> {
    const stands = this.#intake === 'standing';
    this.#intake = 'draining';
    this.#disarm();
    // Do not wait for a standing partition: it would use the whole budget.
    if (this.#working !== null && !stands) await waitAtMost(budgetMs, this.#working, () => {});
    this.end();
  }

  end(): void {
    this.#ownership.end();
    this.#disarm();
    // A write may still read its buffers, so they are released after it.
    if (this.#working === null) this.#releaseAll();
  }

  #releaseAll() {
    for (const block of this.#queue.splice(0)) block.builder.release();
    this.#filling?.builder.release();
    this.#filling = null;
  }

  #openBlock(intent: Intent | null): Block {
    const { sink, log, limits } = this.#options;
    const transformVersion = intent?.transformVersion ?? sink.transformVersion;
    if (transformVersion !== sink.transformVersion)
      throw new Error(`a block was named with transform version ${transformVersion}, which this release cannot build`);
    const builder = sink.openBlock(log.topic, log.partition);
    // A block that was named before is cut only at its named end, without timer or limits.
    if (intent === null) this.#age = setTimeout(() => this.#grewOld(), limits.ageMaxMs);
    const start = intent === null ? (this.#queue.at(-1)?.end ?? this.#done) : this.#done;
    return createBlock({ start, builder, transformVersion, intent, triedTo: this.#note.triedTo });
  }

  #isFull(block: Block): boolean {
    if (block.recoverTo !== null) return this.#next >= block.recoverTo;
    const { rowsMax, bytesMax } = this.#options.limits;
    const { builder, letters, letterBytes } = block;
    return builder.rows + letters.length >= rowsMax || builder.bytes + letterBytes >= bytesMax;
  }

  /** While a block is being written, a larger one behind it is cheaper than two small ones. */
  #grewOld() {
    if (this.#working === null) this.#cut(this.#next);
    else this.#age = 'due';
  }

  #disarm() {
    if (this.#age !== 'due' && this.#age !== null) clearTimeout(this.#age);
    this.#age = null;
  }

  #cut(end: number) {
    const block = this.#filling;
    this.#disarm();
    if (block === null) return;
    this.#filling = null;
    block.end = end;
    block.mark = this.#trail.before(end);
    this.#trail.forget(end);
    this.#queue.push(block);
    this.#working ??= this.#work();
    if (this.#queue.length < BLOCKS_WAITING_MAX || this.#intake !== 'taking') return;
    this.#intake = 'full';
    this.#options.log.pause();
  }

  /** Writes until no block waits or the ownership ends. After a final fault the partition stands for a while. */
  async #work(): Promise<void> {
    do {
      try {
        await this.#writeQueue();
      } catch (fault) {
        if (fault instanceof Fenced) this.#options.metrics.block(this.#options.log.topic, 'fenced');
        const isLost = fault instanceof Fenced || fault instanceof OwnershipOver;
        if (isLost || this.#intake === 'draining') this.end();
        else await this.#standStill(fault);
      }
      // A block may have been cut meanwhile, while `#working` was still set.
    } while (this.#queue.length > 0 && this.#intake !== 'draining' && !this.#ownership.over);
    this.#working = null;
    if (this.#ownership.over) this.#releaseAll();
  }

  async #writeQueue(): Promise<void> {
    while (this.#queue.length > 0) {
      const block = this.#queue[0]!;
      // Only a named block must be finished; others are left to the next owner.
      if (this.#intake === 'draining' && block.namedAtMs === null) break;
      await this.#writer.settle(block, this.#note.carried);
      if (block.namedAtMs === null) await this.#name(block);
      await this.#writer.publishLetters(block);
      await this.#writer.write(block);
      await this.#complete(block);
      if (this.#age === 'due' && this.#queue.length === 0) this.#cut(this.#next);
    }
  }

  async #standStill(fault: unknown): Promise<void> {
    this.#intake = 'standing';
    await this.#standstill.wait(this.#done, fault);
  }

  /** Records that could not be taken are read again: after a wait, or when the current block is written. */
  async #standAside(fault: unknown): Promise<void> {
    await this.#standStill(fault);
    if (this.#working === null && !this.#ownership.over) this.#goOn();
  }

  /** Takes records again after it stood or was full. Records that came while it stood are fetched again. */
  #goOn() {
    const { log } = this.#options;
    if (this.#intake !== 'standing' && this.#intake !== 'full') return;
    if (this.#intake === 'standing') {
      this.#standstill.end(this.#done);
      log.seek(this.#next);
    }
    this.#intake = 'taking';
    log.resume();
  }

  /** Step 1: commits the intent. If that is refused, the block is never written. */
  async #name(block: Block) {
    const namedAtMs = block.namedAtMs ?? Date.now();
    await this.#commit(block.start, { ...this.#note, intent: toIntent(block, namedAtMs) });
    noteNamed(block, namedAtMs);
  }

  /** Step 3: commits the end and, if the next block is cut already, its intent. */
  async #complete(block: Block) {
    const { log, metrics } = this.#options;
    const following = this.#intake === 'draining' ? undefined : this.#queue[1];
    const carried = block.trace?.carries ?? null;
    if (following !== undefined) await this.#writer.settle(following, carried);
    const namedAtMs = Date.now();
    const intent = following === undefined ? null : toIntent(following, namedAtMs);
    const triedTo = (this.#note.triedTo ?? 0) > block.end ? this.#note.triedTo : null;
    const note = { ...this.#note, intent, mark: block.mark, isDecision: false, triedTo, carried };
    await this.#commit(block.end, note);
    if (following !== undefined) noteNamed(following, namedAtMs);
    this.#note = note;
    this.#queue.shift();
    this.#done = block.end;
    metrics.block(log.topic, block.recoverTo === null ? 'written' : 'recovered');
    for (const { kind, reason, count } of block.outcomes.values()) metrics.record(log.topic, { kind, reason }, count);
    block.builder.release();
    this.#goOn();
  }

  #commit(offset: number, note: CommitNote): Promise<void> {
    return commitOffset(this.#owned, offset, this.#intents.toText(note));
  }
}

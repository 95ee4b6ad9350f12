import { type Finding, toFindingText } from './log-finding.ts';
import type { LogPartition } from './log-partition.ts';
import { createOwnedPartition, type OwnedPartition, stopPartition } from './owned-partition.ts';
import { Ownership } from './ownership.ts';
import type { PartitionWorker, Reports } from './partition-worker.ts';

/** The log is not the one whose offset was committed, or it lacks records that nobody has read. */
export class LogReplaced extends Error {
  override readonly name = 'LogReplaced';
}

/** What happened, and the one command that decides, as a sentence for the operator who is alerted. */
export function toRefusal(
  at: { topic: string; partition: number; committed: number; groupId: string },
  finding: Finding,
): LogReplaced {
  const { topic, partition, committed, groupId } = at;
  const command = `npm run offsets -- accept --group ${groupId} --topic ${topic} --partition ${partition}`;
  return new LogReplaced(
    `${topic}/${partition}: ${toFindingText(finding, committed)}. Nothing is read until somebody decides: ${command}`,
  );
}

/** A partition that is assigned here but not read, because going on would silently skip or double records. */
export class StandingPartition implements PartitionWorker {
  readonly healthy = false;
  readonly lastRead = null;
  readonly #ownership = new Ownership();
  readonly #owned: OwnedPartition;
  readonly #committed: number;

  constructor({ log, fault, ...reports }: Reports & { log: LogPartition; fault: Error }) {
    this.#committed = log.committed;
    this.#owned = createOwnedPartition({ log, ownership: this.#ownership, ...reports });
    stopPartition(this.#owned, log.committed, fault);
  }

  get hindrance(): string | null {
    return this.#owned.hindrance.sentence;
  }

  get next(): number {
    return this.#committed;
  }

  get done(): number {
    return this.#committed;
  }

  get settled(): number {
    return this.#committed;
  }

  /** Aborted when the ownership ends. */
  get signal(): AbortSignal {
    return this.#ownership.signal;
  }

  accept(): void {}

  async drain(): Promise<void> {
    this.end();
  }

  end(): void {
    this.#ownership.end();
  }
}

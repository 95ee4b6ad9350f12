import type { Change, KeyUsage, KeyView, RecordKind, RecordView } from '@playline/access-keys';
import type { ChainNode, ChainStore } from '@playline/chain';
import type { ErasureRecords, ErasureRows } from '@playline/erasure';
import type { People } from '@playline/people';
import type { AtomicPublisher, GroupOffsets, LogReader, Producer, StreamRecord } from '@playline/stream';
import type { OpenSessions } from './accounts/account-access.ts';
import type { Schemas } from './await-schema.ts';
import type { MintsContext } from './commands/mints.ts';
import type { AskNode } from './simulate-mint/minter-role.ts';

/** A store that connects in the background. */
interface Connecting {
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * How each store of a deployment is opened: main has them all, a command takes those that its words need and closes them.
 * Each throws UnreachableError when nobody has told its address. Topics are named as they are called on the broker.
 */
export interface StoreOpeners {
  openLog(): LogReader;
  openOffsets(): GroupOffsets;
  /** Whoever opens a name ends the one before. */
  openPublisher(name: string): Promise<AtomicPublisher>;
  openProducer(...topics: readonly string[]): Promise<Producer>;
  /** All records of a topic, at once in memory. */
  readTopic(topic: string): Promise<readonly StreamRecord[]>;
  createSchemas(): Schemas;
  openKeyView(): Promise<KeyView & Connecting>;
  openKeyUsage(): Promise<KeyUsage & { close(): Promise<void> }>;
  openRecordView<R extends Change>(kind: RecordKind<R>): Promise<RecordView<R> & Connecting>;
  openSessions(): Promise<OpenSessions>;
  openPeople(): Promise<People>;
  openMints: MintsContext['openMints'];
  openMintReader: MintsContext['openReader'];
  openErasureRecords(): ErasureRecords;
  openErasureRows(): ErasureRows;
  openChainStore(): ChainStore;
  createNode(node: { readonly name: string; readonly url: string }): ChainNode;
  /** Asks a node anything, also to send. */
  createAsk(node: { readonly url: string }): AskNode;
}

/** What any command reads the log with. */
export type LogOpeners = Pick<StoreOpeners, 'openLog' | 'createSchemas'>;

/** What a command changes records of access with. */
export type RecordOpeners = LogOpeners & Pick<StoreOpeners, 'openProducer' | 'openRecordView'>;

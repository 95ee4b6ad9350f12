import type { Change, KeyUsage, ReadCode, RecordKind, RecordView, SessionStores } from '@playline/access-keys';
import type { ChainNode, ChainStore } from '@playline/chain';
import type { ErasureRecords, ErasureRows } from '@playline/erasure';
import type { MintClaims, MintReader, MintState, MintView } from '@playline/mints';
import type { People } from '@playline/people';
import type { AtomicPublisher, GroupOffsets, LogReader, Producer } from '@playline/stream';
import type { Schemas } from './await-store.ts';
import type { SchemaRegistrar } from './backup/schemas.ts';

/** A store that connects in the background. */
interface Connecting {
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Opens stores. Functions throw UnreachableError if their address is not configured. Topic names include the prefix. */
export interface StoreOpeners {
  openLog(): Promise<LogReader>;
  openOffsets(): Promise<GroupOffsets>;
  /** Fences an earlier publisher with the same transactional id. */
  openPublisher(name: string): Promise<AtomicPublisher>;
  /** Returns the settings of existing topics, without defaults of the cluster. */
  readTopicSettings(topics: readonly string[]): Promise<ReadonlyMap<string, Readonly<Record<string, string>>>>;
  openProducer(...topics: readonly string[]): Promise<Producer>;
  createSchemas(): Promise<Schemas>;
  createRegistrar(): Promise<SchemaRegistrar>;
  openKeyUsage(): Promise<KeyUsage & { close(): Promise<void> }>;
  openRecordView<R extends Change>(kind: RecordKind<R>): Promise<RecordView<R> & Connecting>;
  openSessions(): Promise<SessionStores>;
  openPeople(): Promise<People>;
  openMints(): Promise<{ claims: MintClaims; view: MintView } & Connecting>;
  openMintReader(): Promise<
    MintReader & { readAll(rowsMax: number): AsyncIterable<readonly MintState[]>; close(): Promise<void> }
  >;
  openErasureRecords(): Promise<ErasureRecords>;
  openErasureRows(): Promise<ErasureRows>;
  openChainStore(): Promise<ChainStore>;
  readonly readCode: ReadCode;
  createNode(node: { readonly name: string; readonly url: string }): ChainNode;
}

export type LogOpeners = Pick<StoreOpeners, 'openLog' | 'createSchemas'>;

export type RecordOpeners = LogOpeners & Pick<StoreOpeners, 'openProducer' | 'openRecordView'>;

/** Opens the registry on first use. */
export function createLogSources({ openLog, createSchemas }: LogOpeners) {
  let opened: Promise<Schemas> | null = null;
  const registry = () => {
    opened ??= createSchemas();
    return opened;
  };
  const schemas: Schemas = {
    idOf: async (subject, schema) => (await registry()).idOf(subject, schema),
    schemaOf: async (id) => (await registry()).schemaOf(id),
  };
  return { openLog, schemas, schemaOf: schemas.schemaOf };
}

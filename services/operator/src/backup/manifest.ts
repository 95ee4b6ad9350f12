/** The manifest of a backup, which is written last. */
import { z } from 'zod';

const FORMAT = 1;
/** The start time, so that names sort by time. */
export const ID = /^\d{8}T\d{9}Z$/;

const fileSchema = z.object({
  /** Name for the store that contains the backup. */
  file: z.string(),
  bytes: z.number(),
  sha256: z.string(),
});

const tableSchema = z.object({
  name: z.string(),
  columns: z.array(z.string()),
  files: z.array(
    fileSchema.extend({
      /** `partition_id` in ClickHouse. */
      partition: z.string(),
      /** Changes with the parts of the partition. */
      parts: z.string(),
    }),
  ),
});

const commitSchema = z.object({
  group: z.string(),
  /** Without the prefix. */
  topic: z.string(),
  partition: z.number(),
  committed: z.number(),
  /** The last record before the commit, which shows whether a log is the one of the backup; null if there is none. */
  last: z.object({ offset: z.number(), sha256: z.string() }).nullable(),
  /** Offsets that may have rows from earlier logs. */
  replaced: z.array(z.object({ start: z.number(), end: z.number() })),
});

const topicSchema = fileSchema.extend({
  /** Without the prefix. */
  topic: z.string(),
  partitions: z.number(),
  /** Exclusive end of the copied records by partition. */
  ends: z.array(z.number()),
  records: z.number(),
});

const manifestSchema = z.object({
  format: z.literal(FORMAT),
  id: z.string(),
  finishedAt: z.string(),
  /** Checksums of the applied SQL files by name. */
  schema: z.record(z.string(), z.string()),
  /** LINK_TOPIC_GENERATION. */
  generation: z.number(),
  propertyColumns: z.array(z.object({ statement: z.string(), name: z.string() })),
  tables: z.array(tableSchema),
  commits: z.array(commitSchema),
  topics: z.array(topicSchema),
  /** Settings that were set on topics. Missing in older manifests. */
  topicSettings: z.array(z.object({ topic: z.string(), settings: z.record(z.string(), z.string()) })).default([]),
  schemas: z.array(z.object({ id: z.number(), subject: z.string(), schema: z.string() })),
  secrets: z.array(z.object({ name: z.string(), salt: z.string(), fingerprint: z.string() })),
  accounts: z.array(z.string()),
});

export type Manifest = z.infer<typeof manifestSchema>;
export type BackedUpTable = z.infer<typeof tableSchema>;
export type BackedUpFile = BackedUpTable['files'][number];
export type BackedUpCommit = z.infer<typeof commitSchema>;
export type BackedUpTopic = z.infer<typeof topicSchema>;
export type StoredFile = z.infer<typeof fileSchema>;

/** Content of a manifest, without the members that a store adds. */
export type NewManifest = Omit<Manifest, 'format' | 'id'>;

export const toBackupId = (atMs: number): string => new Date(atMs).toISOString().replace(/[-:.]/g, '');

export const toText = (id: string, manifest: NewManifest): string =>
  `${JSON.stringify({ format: FORMAT, id, ...manifest } satisfies Manifest, null, 1)}\n`;

/** @throws Error if another release wrote the manifest */
export function parseManifest(location: string, text: string): Manifest {
  const parsed = manifestSchema.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new Error(`${location} was written by another release: restore with that release.`);
}

/** @throws Error for a file that is missing or has another size. @param bytes sizes of stored files by name */
export function assertSizes(
  { location, manifest }: { location: string; manifest: Manifest },
  bytes: ReadonlyMap<string, number>,
): void {
  const damaged = filesOf(manifest).find((each) => bytes.get(each.file) !== each.bytes);
  if (damaged === undefined) return;
  const found = bytes.get(damaged.file);
  const problem = found === undefined ? 'is missing' : `has ${found} bytes instead of ${damaged.bytes}`;
  throw new Error(`${location} is incomplete: ${damaged.file} ${problem}. Use another backup.`);
}

export const filesOf = ({ tables, topics }: NewManifest): StoredFile[] => [
  ...tables.flatMap(({ files }) => files),
  ...topics,
];

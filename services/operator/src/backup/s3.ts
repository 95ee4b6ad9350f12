/**
 * Backups below a prefix in S3: `manifests/<id>.json`, and `files/<id>/…` with the files that a backup has uploaded. Later
 * manifests refer to unchanged files of earlier backups, so an unreferenced file can be deleted, but no old one.
 */
import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandInput,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
  type S3ClientConfig,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { UnreachableError, UsageError } from '../command.ts';
import type { Backup, BackupStore, Content } from './backup-store.ts';
import { assertSizes, filesOf, ID, type NewManifest, parseManifest, type StoredFile, toText } from './manifest.ts';

/** S3 allows 10,000 parts, so a file can have 320 GB. */
const PART_BYTES = 32 * 1024 * 1024;
/** Parts in memory while they are sent. */
const PARTS_MAX = 2;
const READ_BYTES = 16 * 1024 * 1024;
const ATTEMPTS = 5;
const CONNECT_MAX_MS = 10_000;
const SILENCE_MAX_MS = 60_000;

type Environment = Readonly<Record<string, string | undefined>>;

/** The client itself reads credentials and the region from the usual environment variables and files. */
function toClientSettings({ AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION }: Environment): S3ClientConfig {
  const endpoint = AWS_ENDPOINT_URL_S3 || AWS_ENDPOINT_URL;
  return {
    maxAttempts: ATTEMPTS,
    requestHandler: { connectionTimeout: CONNECT_MAX_MS, socketTimeout: SILENCE_MAX_MS },
    // Other stores have no name per bucket, and mostly ignore the region.
    ...(endpoint && { endpoint, forcePathStyle: true, region: AWS_REGION || 'us-east-1' }),
  };
}

/** @throws UsageError for an URL without a bucket */
export function openS3(url: string, environment: Environment): BackupStore {
  const [, bucket, path = ''] = /^s3:\/\/([^/]+)\/*(.*?)\/*$/.exec(url) ?? [];
  if (bucket === undefined) throw new UsageError('expected s3://bucket/prefix');
  const client = new S3Client(toClientSettings(environment));
  // Outside of retries, for every request.
  client.middlewareStack.add(
    (next) => (args) =>
      next(args).catch((fault: unknown) => {
        throw toExplained(fault, { bucket, key: 'Key' in args.input ? args.input.Key : undefined });
      }),
    { step: 'initialize', priority: 'high' },
  );
  return new S3Backups(client, { Bucket: bucket, prefix: path === '' ? '' : `${path}/` });
}

class S3Backups implements BackupStore {
  readonly #client: S3Client;
  readonly #bucket: { readonly Bucket: string };
  readonly #prefix: string;

  constructor(client: S3Client, { Bucket, prefix }: { Bucket: string; prefix: string }) {
    this.#client = client;
    this.#bucket = { Bucket };
    this.#prefix = prefix;
  }

  async list(): Promise<string[]> {
    const ids: string[] = [];
    for await (const { name } of this.#list('manifests/')) {
      const id = name.replace(/\.json$/, '');
      if (ID.test(id)) ids.push(id);
    }
    return ids.sort();
  }

  async open(id: string): Promise<Backup> {
    const name = `manifests/${id}.json`;
    const bytes = await this.#read({ Key: this.#prefix + name });
    const manifest = parseManifest(this.#toUrl(name), Buffer.from(bytes).toString());
    const location = this.#toUrl(id);
    return {
      location,
      manifest,
      read: (file) => this.#readFile(file),
      assertComplete: async () => assertSizes({ location, manifest }, await this.#readSizes()),
    };
  }

  async create(id: string) {
    const ids = await this.list();
    // Once a day, because all manifests must be read.
    if (dayOf(ids.at(-1)) !== dayOf(id)) await this.#deleteUnused(ids);
    return {
      toFile: (name: string) => `${id}/${name}`,
      write: (file: string, content: Content) => this.#write(file, content),
      share: async (_: Backup, file: string) => file,
      finish: async (manifest: NewManifest) => {
        await this.#assertStored(filesOf(manifest));
        const Key = `${this.#prefix}manifests/${id}.json`;
        const Body = toText(id, manifest);
        await this.#client.send(new PutObjectCommand({ ...this.#bucket, Key, Body, ContentType: 'application/json' }));
        return this.#toUrl(id);
      },
    };
  }

  #toUrl(name: string): string {
    return `s3://${this.#bucket.Bucket}/${this.#prefix}${name}`;
  }

  async *#list(folder: string): AsyncGenerator<{ name: string; bytes: number }> {
    const Prefix = this.#prefix + folder;
    for await (const { Contents = [] } of paginateListObjectsV2({ client: this.#client }, { ...this.#bucket, Prefix }))
      for (const { Key = '', Size = 0 } of Contents) yield { name: Key.slice(Prefix.length), bytes: Size };
  }

  async #read(object: Omit<GetObjectCommandInput, 'Bucket'>): Promise<Uint8Array> {
    for (let attempt = 1; ; attempt++) {
      const { Body } = await this.#client.send(new GetObjectCommand({ ...this.#bucket, ...object }));
      try {
        return (await Body?.transformToByteArray()) ?? new Uint8Array();
      } catch (fault) {
        // The client repeats requests, but not the transfer of their content.
        if (attempt === ATTEMPTS) throw toExplained(fault, { bucket: this.#bucket.Bucket, key: object.Key });
      }
    }
  }

  /** Reads in ranges, because a connection would time out while ClickHouse inserts the content of a large file. */
  async *#readFile({ file, bytes }: StoredFile): Content {
    const Key = `${this.#prefix}files/${file}`;
    for (let at = 0; at < bytes; at += READ_BYTES)
      yield await this.#read({ Key, Range: `bytes=${at}-${Math.min(at + READ_BYTES, bytes) - 1}` });
  }

  async #write(file: string, content: Content): Promise<void> {
    const params = { ...this.#bucket, Key: `${this.#prefix}files/${file}`, Body: Readable.from(content) };
    await new Upload({ client: this.#client, params, partSize: PART_BYTES, queueSize: PARTS_MAX }).done();
  }

  /**
   * Deletes files of deleted and killed backups. A backup that is newer than the newest manifest may be running. Deletes
   * nothing while a manifest cannot be read, because its files are unknown.
   */
  async #deleteUnused(ids: readonly string[]): Promise<void> {
    const used = await this.#readUsed(ids);
    if (used === null) return;
    const newest = ids.at(-1) ?? '';
    for await (const { name } of this.#list('files/')) {
      if (used.has(name) || name > newest) continue;
      await this.#client.send(new DeleteObjectCommand({ ...this.#bucket, Key: `${this.#prefix}files/${name}` }));
    }
  }

  async #readUsed(ids: readonly string[]): Promise<Set<string> | null> {
    const used = new Set<string>();
    for (const id of ids)
      try {
        for (const { file } of filesOf((await this.open(id)).manifest)) used.add(file);
      } catch (fault) {
        // A manifest may be deleted at any time.
        if (!(fault instanceof MissingObjectError)) return null;
      }
    return used;
  }

  async #readSizes(): Promise<Map<string, number>> {
    const sizes = new Map<string, number>();
    for await (const { name, bytes } of this.#list('files/')) sizes.set(name, bytes);
    return sizes;
  }

  /** @throws Error if another backup has deleted files of this one */
  async #assertStored(files: readonly StoredFile[]): Promise<void> {
    const stored = await this.#readSizes();
    const missing = files.find(({ file, bytes }) => stored.get(file) !== bytes);
    if (missing === undefined) return;
    throw new Error(
      `${this.#toUrl(`files/${missing.file}`)} was deleted or changed while the backup was running: run one backup at a time`,
    );
  }
}

class MissingObjectError extends Error {}

const dayOf = (id = ''): string => id.slice(0, 8);

const REFUSALS = /^(AccessDenied|Forbidden|InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|ExpiredToken.*|403)$/;
const NETWORK = /^(E[A-Z]{3,}|UND_ERR_\w+|CERT_\w+|\w*_CERT\w*|TimeoutError)$/;

/** Replaces errors that an operator can correct. The messages of a store may contain parts of a signature. */
function toExplained(fault: unknown, { bucket, key }: { bucket: string; key: string | undefined }): unknown {
  if (!(fault instanceof Error)) return fault;
  const {
    name,
    message,
    code = name,
    $metadata,
  } = fault as Error & {
    code?: string;
    $metadata?: { httpStatusCode?: number };
  };
  if (name === 'NoSuchBucket') return new Error(`the bucket ${bucket} does not exist: create it, or correct its name`);
  if (name === 'NoSuchKey') return new MissingObjectError(`s3://${bucket}/${key} does not exist: use another backup`);
  if (name === 'CredentialsProviderError')
    return new Error('no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  if (message === 'Region is missing') return new Error('no region for S3: set AWS_REGION');
  if (REFUSALS.test(name) || $metadata?.httpStatusCode === 403)
    return new Error(
      `S3 refused the access to the bucket ${bucket} (${name}): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, ` +
        'AWS_SESSION_TOKEN and the permissions s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject',
    );
  if ($metadata?.httpStatusCode === 301 || name === 'AuthorizationHeaderMalformed')
    return new Error(`the bucket ${bucket} is in another region: set AWS_REGION`);
  if ($metadata?.httpStatusCode === undefined && NETWORK.test(code))
    return new UnreachableError(`S3 does not respond (${code}): check AWS_ENDPOINT_URL_S3 and AWS_REGION`);
  return fault;
}

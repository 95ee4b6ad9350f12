import { readdirSync, readFileSync } from 'node:fs';
import avro from 'avsc';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  accessKeyCodec,
  accountCodec,
  activityCodec,
  auditEntryCodec,
  chainMetadataCodec,
  collectionCodec,
  consentCodec,
  createRecordReader,
  createSchemaReaders,
  erasureRequestCodec,
  frameRecord,
  identityDecisionCodec,
  identityLinkCodec,
  indexProgressCodec,
  messageRecordCodec,
  mintRequestCodec,
  mintStateCodec,
  mintTransactionCodec,
  projectCodec,
  type RecordCodec,
  rateLimitKeyCodec,
  rejectionCodec,
  signableKeyCodec,
  tokenCodec,
} from './records.ts';
import { TOPICS } from './topics.ts';

/** Creates a schema source that returns the given results in order, or throws a result that is an error. */
function createSource(...results: (string | null | Error)[]) {
  const requested: number[] = [];
  const schemaOf = async (id: number) => {
    requested.push(id);
    const result = results.shift();
    if (result === undefined) throw new Error('unexpected request to the schema source');
    if (result instanceof Error) throw result;
    return result;
  };
  return { requested, schemaOf };
}
const createReader = (schema: string) => schema.toUpperCase();

it('createSchemaReaders queries the registry once for concurrent calls and caches the reader', async () => {
  const { requested, schemaOf } = createSource('schema');
  const readers = createSchemaReaders({ schemaOf, createReader });
  expect(readers.get(7)).toBeUndefined();
  const readable = { kind: 'readable', reader: 'SCHEMA' };
  expect(await Promise.all([readers.fetch(7), readers.fetch(7)])).toEqual([readable, readable]);
  expect(readers.get(7)).toEqual(readable);
  expect(requested).toEqual([7]);
});

it('createSchemaReaders throws if the registry is unreachable, and retries on the next call', async () => {
  const { schemaOf } = createSource(new Error('ECONNREFUSED'), 'schema');
  const readers = createSchemaReaders({ schemaOf, createReader });
  await expect(readers.fetch(7)).rejects.toThrow('ECONNREFUSED');
  expect(readers.get(7)).toBeUndefined();
  expect(await readers.fetch(7)).toEqual({ kind: 'readable', reader: 'SCHEMA' });
});

it('createSchemaReaders caches an unknown id for a minute, then queries the registry again', async () => {
  let nowMs = 5;
  const { schemaOf } = createSource(null, 'schema');
  const readers = createSchemaReaders({ schemaOf, createReader, nowMs: () => nowMs });
  const unreadable = { kind: 'unreadable', reason: 'schema not in the registry: 7' };
  expect(await readers.fetch(7)).toEqual(unreadable);
  nowMs = 60_004;
  expect(readers.get(7)).toEqual(unreadable);
  nowMs = 60_005;
  expect(readers.get(7)).toBeUndefined();
  expect(await readers.fetch(7)).toEqual({ kind: 'readable', reader: 'SCHEMA' });
});

it('createSchemaReaders caches an incompatible schema permanently', async () => {
  const fail = () => {
    throw new Error('no');
  };
  const readers = createSchemaReaders({ ...createSource('x'), createReader: fail });
  await readers.fetch(7);
  expect(readers.get(7)).toEqual({ kind: 'unreadable', reason: 'schema cannot be read: 7, no' });
});

it('createSchemaReaders caches every readable schema, but only the latest 1,000 unknown ids', async () => {
  const schemaOf = async (id: number) => (id === 0 ? 'schema' : null);
  const readers = createSchemaReaders({ schemaOf, createReader });
  for (let id = 0; id <= 1_001; id++) await readers.fetch(id);
  expect([readers.get(0)?.kind, readers.get(1), readers.get(2)?.kind]).toEqual(['readable', undefined, 'unreadable']);
});

/** Codecs by schema file. */
const CODECS: ReadonlyMap<string, RecordCodec<unknown>> = new Map(
  (
    [
      [TOPICS.messages, messageRecordCodec],
      [TOPICS.identityLinks, identityLinkCodec],
      [TOPICS.identityDecisions, identityDecisionCodec],
      [TOPICS.rejections, rejectionCodec],
      [TOPICS.consents, consentCodec],
      [TOPICS.erasures, erasureRequestCodec],
      [TOPICS.accessKeys, accessKeyCodec],
      [TOPICS.projects, projectCodec],
      [TOPICS.rateLimitKeys, rateLimitKeyCodec],
      [TOPICS.collections, collectionCodec],
      [TOPICS.accounts, accountCodec],
      [TOPICS.signableKeys, signableKeyCodec],
      [TOPICS.audit, auditEntryCodec],
      [TOPICS.activities, activityCodec],
      [TOPICS.tokens, tokenCodec],
      [TOPICS.indexProgress, indexProgressCodec],
      [TOPICS.mintRequests, mintRequestCodec],
      [TOPICS.mintStates, mintStateCodec],
      [TOPICS.mintTransactions, mintTransactionCodec],
      [TOPICS.chainMetadata, chainMetadataCodec],
    ] as const
  ).map(([{ schema }, codec]) => [schema ?? '', codec as RecordCodec<unknown>]),
);
const FILES = [...CODECS.keys()];

interface RecordSchema {
  fields: { name: string; type: unknown; default?: unknown }[];
}

/** Generates values of an Avro type. */
function createArbitrary(type: avro.Type): fc.Arbitrary<unknown> {
  if (type instanceof avro.types.RecordType)
    return fc.record(Object.fromEntries(type.fields.map((field) => [field.name, createArbitrary(field.type)])));
  if (type instanceof avro.types.ArrayType) return fc.array(createArbitrary(type.itemsType), { maxLength: 3 });
  if (type instanceof avro.types.EnumType) return fc.constantFrom(...type.symbols);
  if (type instanceof avro.types.FixedType)
    return fc.uint8Array({ minLength: type.size, maxLength: type.size }).map((bytes) => Buffer.from(bytes));
  if (type instanceof avro.types.UnwrappedUnionType) return fc.oneof(...type.types.map(createArbitrary));
  const primitives: Record<string, fc.Arbitrary<unknown>> = {
    string: fc.string({ unit: 'grapheme' }),
    boolean: fc.boolean(),
    int: fc.integer(),
    // Large enough for times and offsets. JavaScript numbers cannot represent every 64-bit integer.
    long: fc.integer({ min: -(2 ** 48), max: 2 ** 48 }),
    bytes: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    double: fc.double({ noNaN: true }),
    null: fc.constant(null),
  };
  return primitives[type.typeName]!;
}

const typeOf = (schema: object) => avro.Type.forSchema(schema as avro.Schema, { wrapUnions: 'never' });
const toPlain = (value: unknown) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>;

it('every schema file has a codec', () => {
  expect([...FILES].sort()).toEqual(readdirSync(new URL('../schemas', import.meta.url)).sort());
});

const added = fc.constantFrom(
  { name: 'added', type: 'string', default: '' },
  { name: 'added', type: ['null', 'long'], default: null },
  { name: 'added', type: { type: 'array', items: 'string' }, default: [] },
);

it.each(FILES)('createRecordReader reads records of %s from a later release with an additional field', async (file) => {
  const codec = CODECS.get(file)!;
  const current = JSON.parse(codec.schema) as RecordSchema;
  const records = createArbitrary(typeOf(current));
  await fc.assert(
    fc.asyncProperty(records, added, fc.nat(current.fields.length), async (record, field, at) => {
      const later = typeOf({ ...current, fields: current.fields.toSpliced(at, 0, field) });
      const [value] = fc.sample(createArbitrary(typeOf({ ...current, fields: [field] })), 1);
      const bytes = later.toBuffer({ ...(record as object), ...(value as object) });
      const schemaOf = async () => JSON.stringify(later.schema({ exportAttrs: true }));
      const read = await createRecordReader({ schemaOf, createReader: codec.decoderOf })(frameRecord(9, bytes));
      expect(toPlain(read)).toEqual(toPlain({ kind: 'record', record }));
    }),
    { numRuns: 25 },
  );
});

it.each(FILES)(
  'createRecordReader reads records of %s from an earlier release and fills missing fields with their defaults',
  (file) => {
    // The test adds a field to the current schema to simulate a later release, which reads records of this release.
    const codec = CODECS.get(file)!;
    const current = JSON.parse(codec.schema) as RecordSchema;
    const { fields } = current;
    fc.assert(
      fc.asyncProperty(createArbitrary(typeOf(current)), added, fc.nat(fields.length), async (record, field, at) => {
        const later = typeOf({ ...current, fields: fields.toSpliced(at, 0, field) });
        const createLaterReader = (writer: string) => {
          const resolver = later.createResolver(avro.Type.forSchema(JSON.parse(writer)));
          return (body: Buffer) => later.fromBuffer(body, resolver) as unknown;
        };
        const readValue = createRecordReader({ schemaOf: async () => codec.schema, createReader: createLaterReader });
        const read = await readValue(frameRecord(9, codec.encode(record)));
        expect(toPlain(read)).toEqual(
          toPlain({ kind: 'record', record: { ...(record as object), added: field.default } }),
        );
      }),
      { numRuns: 25 },
    );
  },
);

it('createRecordReader refuses values with the schema of another topic', async () => {
  for (const [file, codec] of CODECS)
    for (const other of FILES.filter((name) => name !== file)) {
      const schema = readFileSync(new URL(`../schemas/${other}`, import.meta.url), 'utf8');
      const read = createRecordReader({ schemaOf: async () => schema, createReader: codec.decoderOf });
      expect((await read(frameRecord(9, Buffer.alloc(400)))).kind).toBe('unreadable');
    }
});

it('createRecordReader reveals no record data in its reasons, and returns no promise if it knows the schema id', async () => {
  const read = createRecordReader({ schemaOf: async () => consentCodec.schema, createReader: consentCodec.decoderOf });
  expect(await read(frameRecord(9, Buffer.from('player@example.org')))).toEqual({
    kind: 'unreadable',
    reason: 'not a record of its schema: 9',
  });
  expect(read(frameRecord(9, Buffer.of(1)))).not.toBeInstanceOf(Promise);
  expect([read(null), read(Buffer.from('{}'))]).toEqual([
    { kind: 'unreadable', reason: 'no schema id' },
    { kind: 'unreadable', reason: 'no schema id' },
  ]);
});

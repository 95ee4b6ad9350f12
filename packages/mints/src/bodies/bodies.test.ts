import { PublicError } from '@playline/errors';
import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseCollectionBody, parseMintBody, parseStacksBody, parseTokensBody } from '../index.ts';

const OWNER = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const asset = (overrides: object = {}) => ({ reference_id: 'a', owner_address: OWNER, ...overrides });
const bytesOf = (body: unknown) => Buffer.from(JSON.stringify(body));
const mint = (...assets: unknown[]) => parseMintBody(bytesOf({ assets }));

function fieldsOf(work: () => unknown): string[] {
  try {
    work();
    return [];
  } catch (fault) {
    expect(fault).toMatchObject({ code: 'VALIDATION_ERROR' });
    const { details } = fault as PublicError;
    return ((details?.errors ?? []) as { field: string }[]).map(({ field }) => field);
  }
}

it('a mint request treats null as absent, ignores unknown members, and converts addresses to lower case', () => {
  const metadata = { name: 'Sword', attributes: [{ trait_type: 't', value: 1, display_type: 'date', x: 1 }], x: 1 };
  expect(
    mint(asset({ token_id: null, amount: null, metadata: null, x: {} }), asset({ token_id: '0', metadata })),
  ).toEqual([
    { referenceId: 'a', ownerAddress: OWNER.toLowerCase(), tokenId: null, amount: null, metadata: null },
    {
      referenceId: 'a',
      ownerAddress: OWNER.toLowerCase(),
      tokenId: '0',
      amount: null,
      metadata: '{"name":"Sword","attributes":[{"trait_type":"t","value":1,"display_type":"date"}]}',
    },
  ]);
});

it('a mint request reports all validation errors with their paths', () => {
  const wrong = asset({ reference_id: ' ', owner_address: 'me', token_id: '01', amount: '0', metadata: [] });
  expect(fieldsOf(() => mint(wrong, 1, asset({ metadata: { name: 1, attributes: [{}] } })))).toEqual([
    ...['reference_id', 'owner_address', 'token_id', 'amount', 'metadata'].map((name) => `assets[0].${name}`),
    'assets[1]',
    'assets[2].metadata.name',
    'assets[2].metadata.attributes[0].trait_type',
    'assets[2].metadata.attributes[0].value',
  ]);
});

it.each([
  ['a reference id of 256 emoji', asset({ reference_id: '😀'.repeat(256) }), true],
  ['a reference id of 257 characters', asset({ reference_id: 'a'.repeat(257) }), false],
  ['a reference id with a lone surrogate', asset({ reference_id: 'a\ud800' }), false],
  ['a number as its reference id', asset({ reference_id: 1 }), false],
  ['the largest token id', asset({ token_id: String(2n ** 256n - 1n) }), true],
  ['a token id of 2^256', asset({ token_id: String(2n ** 256n) }), false],
  ['a hexadecimal token id', asset({ token_id: '0x1' }), false],
  ['a number as its token id', asset({ token_id: 1 }), false],
  ['an empty token id', asset({ token_id: '' }), false],
  ['metadata of 16 KiB', asset({ metadata: { name: 'a'.repeat(16_384 - 11) } }), true],
  ['metadata of 16 KiB and one byte', asset({ metadata: { name: 'a'.repeat(16_384 - 10) } }), false],
  [
    'an attribute with a null display type',
    asset({ metadata: { attributes: [{ trait_type: 't', value: true, display_type: null }] } }),
    true,
  ],
  [
    'an attribute with an unknown display type',
    asset({ metadata: { attributes: [{ trait_type: 't', value: 1, display_type: 'x' }] } }),
    false,
  ],
  ['an attribute whose value is a list', asset({ metadata: { attributes: [{ trait_type: 't', value: [] }] } }), false],
])('parseMintBody reports whether a mint request with %s is valid: %s', (_what, requestedAsset, isAccepted) => {
  expect(fieldsOf(() => mint(requestedAsset)).length === 0).toBe(isAccepted);
});

it('a mint request must contain 1 to 100 assets', () => {
  for (const [count, isAccepted] of [
    [0, false],
    [1, true],
    [100, true],
    [101, false],
  ] as const) {
    const assets = Array.from({ length: count }, () => asset());
    expect(fieldsOf(() => parseMintBody(bytesOf({ assets }))).length === 0).toBe(isAccepted);
  }
});

it('a mint request is rejected if an attribute is 1e400, which JSON cannot represent', () => {
  const text = `{"assets":[${JSON.stringify(asset({ metadata: { attributes: [{ trait_type: 't', value: 0 }] } })).replace('"value":0', '"value":1e400')}]}`;
  expect(fieldsOf(() => parseMintBody(Buffer.from(text)))).toEqual(['assets[0].metadata.attributes[0].value']);
});

it.each(['12345678901234567890', '9007199254740993', '-9007199254740992', '1e21'])(
  'a mint request is rejected if an attribute is %s, because the number would be rounded',
  (number) => {
    const text = JSON.stringify({ assets: [asset({ metadata: { attributes: [{ trait_type: 't', value: 0 }] } })] });
    const body = Buffer.from(text.replace('"value":0', `"value":${number}`));
    expect(fieldsOf(() => parseMintBody(body))).toEqual(['assets[0].metadata.attributes[0].value']);
  },
);

it('a mint request can contain the largest integers that are stored exactly', () => {
  const attributes = [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0.1].map((value) => ({
    trait_type: 't',
    value,
  }));
  const [read] = mint(asset({ metadata: { attributes } }));
  expect(JSON.parse(read!.metadata!)).toEqual({ attributes });
});

const texts = {
  name: null,
  description: null,
  image: null,
  external_url: null,
  animation_url: null,
  youtube_url: null,
};
const token = { ...texts, attributes: null };
const collection = {
  name: null,
  symbol: null,
  description: null,
  image: null,
  external_link: null,
  contract_uri: null,
  base_uri: null,
};

it('a metadata body must contain every key, but values can be null', () => {
  expect(fieldsOf(() => parseCollectionBody(bytesOf({ collection_metadata: {} })))).toEqual(
    Object.keys(collection).map((name) => `collection_metadata.${name}`),
  );
  expect(parseCollectionBody(bytesOf({ collection_metadata: collection }))).toEqual(collection);
  const withoutImage = { ...token, image: undefined };
  expect(fieldsOf(() => parseTokensBody(bytesOf({ nft_metadata: [{ token_id: '1', ...withoutImage }] })))).toEqual([
    'nft_metadata[0].image',
  ]);
});

it('a metadata body must contain 1 to 250 tokens with decimal ids, or 1 to 10 stacks with UUIDs', () => {
  const tokens = (count: number, token_id: unknown = '1') =>
    fieldsOf(() =>
      parseTokensBody(bytesOf({ nft_metadata: Array.from({ length: count }, () => ({ token_id, ...token })) })),
    );
  expect([tokens(0), tokens(1), tokens(250), tokens(251)].map((faults) => faults.length)).toEqual([1, 0, 0, 1]);
  expect(tokens(1, null)).toEqual(['nft_metadata[0].token_id']);
  const id = '018F3A5C-7c1e-7d2a-9b1e-3f4a5b6c7d8e';
  const stacks = (count: number, metadata_id: unknown = id) =>
    fieldsOf(() =>
      parseStacksBody(bytesOf({ metadata: Array.from({ length: count }, () => ({ metadata_id, ...token })) })),
    );
  expect([stacks(0), stacks(1), stacks(10), stacks(11)].map((faults) => faults.length)).toEqual([1, 0, 0, 1]);
  expect(stacks(1, 'sword')).toEqual(['metadata[0].metadata_id']);
  const [read] = parseStacksBody(bytesOf({ metadata: [{ metadata_id: id, ...token }] }));
  expect(read).toEqual({ kind: 'stack', subject: id.toLowerCase(), metadata: JSON.stringify(token) });
});

const PARSERS = [parseMintBody, parseCollectionBody, parseTokensBody, parseStacksBody];
/** Names that the parsers read, and names that every object inherits. */
const name = fc.constantFrom(
  ...['assets', 'reference_id', 'owner_address', 'token_id', 'amount', 'metadata', 'attributes', 'trait_type', 'value'],
  ...['nft_metadata', 'collection_metadata', 'metadata_id', 'name', '__proto__', 'constructor', 'toString'],
);
const { hostile } = fc.letrec((tie) => ({
  hostile: fc.oneof(
    { maxDepth: 6 },
    fc.constantFrom(null, true, 0, -1, 1e308, '', ' ', 'a', '1', OWNER, '\ud800', '\u0000'),
    fc.array(tie('hostile'), { maxLength: 4 }),
    fc.array(fc.tuple(name, tie('hostile')), { maxLength: 6 }).map((pairs) => ({ pairs })),
  ),
}));

function toJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const { pairs } = value as { pairs: [string, unknown][] };
  return `{${pairs.map(([key, each]) => `${JSON.stringify(key)}:${toJson(each)}`).join(',')}}`;
}

it('every body is either parsed or rejected with VALIDATION_ERROR and at most 100 errors', () => {
  const property = fc.property(hostile, fc.constantFrom(...PARSERS), (value, parse) => {
    try {
      parse(Buffer.from(toJson(value)));
    } catch (fault) {
      expect(fault).toBeInstanceOf(PublicError);
      expect(fault).toMatchObject({ code: 'VALIDATION_ERROR' });
      const { errors = [] } = ((fault as PublicError).details ?? {}) as { errors?: unknown[] };
      expect(errors.length).toBeLessThanOrEqual(100);
    }
  });
  fc.assert(property, { numRuns: 2000 });
});

it.each([
  ['that is invalid JSON', '{'],
  ['that is empty', ''],
  ['that is invalid UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ['that is a list', '[]'],
  ['that is a string', '"assets"'],
  ['with 100,000 nested lists', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
  ['that sets the members of its prototype', '{"__proto__":{"assets":[]}}'],
])('the parsers reject a body %s', (_what, body) => {
  for (const parse of PARSERS) expect(() => parse(Buffer.from(body))).toThrow(PublicError);
});

it('the stored metadata equals the metadata in the request', () => {
  const text = fc.string({ unit: codePoint, maxLength: 20 });
  const double = fc.double({ noNaN: true, noDefaultInfinity: true });
  const number = double.filter((each) => !Number.isInteger(each) || Number.isSafeInteger(each));
  const value = fc.oneof(text, number, fc.boolean());
  const attributes = fc.array(fc.record({ trait_type: text, value }), { maxLength: 3 });
  const metadata = fc.record({ name: text, description: text, attributes }, { requiredKeys: [] });
  fc.assert(
    fc.property(metadata, (requestedMetadata) => {
      const [read] = mint(asset({ metadata: requestedMetadata }));
      const stored = JSON.parse(read!.metadata!);
      expect(stored).toEqual(
        JSON.parse(
          JSON.stringify(requestedMetadata, (_, each) => (typeof each === 'string' ? each.toWellFormed() : each)),
        ),
      );
    }),
  );
});

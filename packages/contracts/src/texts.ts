const ENVIRONMENT_ID = /^[a-z0-9_-]{1,64}$/;
const CHAIN_NAME = /^[a-z0-9-]{1,64}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const HASH = /^0x[0-9a-fA-F]{64}$/;
const DIGITS = /^(0|[1-9]\d*)$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const UINT64_MAX = 2n ** 64n - 1n;
/** Digits of 2^256 - 1, the largest uint256. */
const UINT256_DIGITS = 78;

/** The id of an environment. */
export const isEnvironmentId = (text: string): boolean => ENVIRONMENT_ID.test(text);
/** The name of a chain in paths of the interface. */
export const isChainName = (text: string): boolean => CHAIN_NAME.test(text);
/** `0x` and 40 hexadecimal digits in any case. */
export const isAddressText = (text: string): boolean => ADDRESS.test(text);
/** `0x` and 64 hexadecimal digits in any case. */
export const isHashText = (text: string): boolean => HASH.test(text);
/** A UUID in any case. */
export const isUuidText = (text: string): boolean => UUID.test(text);

/** Decimal digits without leading zeros, at most as many as a uint256 has. */
export const isUint256Text = (text: string): boolean => text.length <= UINT256_DIGITS && DIGITS.test(text);
/** Decimal digits of a number below 2^64, without leading zeros, so that each number has one text. */
export const isUint64Text = (text: string): boolean => isUint256Text(text) && BigInt(text) <= UINT64_MAX;

/** An address, a hash or data of a chain. */
export const toHexText = (bytes: Buffer): `0x${string}` => `0x${bytes.toString('hex')}`;
/** The bytes of a valid one. */
export const fromHexText = (text: string): Buffer => Buffer.from(text.slice(2), 'hex');
/** The 16 bytes of a valid UUID. */
export const fromUuidText = (text: string): Buffer => Buffer.from(text.replaceAll('-', ''), 'hex');
/** @param bytes 16 */
export const toUuidText = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** Whether a value of JSON is an object: no list, not null. */
export const isJsonObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

import { generateKeyPairSync } from 'node:crypto';
import { CompactEncrypt, compactDecrypt } from 'jose';
import {
  encodeFunctionData,
  keccak256,
  parseAbi,
  parseTransaction,
  recoverMessageAddress,
  recoverTransactionAddress,
  type TransactionSerializedEIP1559,
  toHex,
} from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { beforeAll, describe, expect, it } from 'vitest';
import { createRecordStore } from '../records/record-store.ts';
import { createSigner, parseSignerKeys, resealSignableKey, UnusableKey } from '../signer/index.ts';
import { createMemoryRecordLog, createMemoryRecords } from '../test/memory-records.ts';
import { makeSealedPair } from './make-pair.ts';
import { parseSealHeader, parseSignerPublicKey } from './seal.ts';
import {
  CONTRACT_ROLES,
  createSignableKey,
  disableSignableKey,
  enableSignableKey,
  grantCallsOf,
  SIGNABLE_KEYS,
  type SignableKeyRecord,
  toShownSignableKey,
} from './signable-key.ts';

const INVALID = { code: 'VALIDATION_ERROR' };
const NOT_FOUND = { code: 'RESOURCE_NOT_FOUND' };
function makeSignerKeys() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = privateKey.export({ format: 'jwk' });
  const [key] = parseSignerKeys(JSON.stringify([jwk]));
  const publicText = JSON.stringify(publicKey.export({ format: 'jwk' }));
  return { jwk, key: key!, publicText, signerKey: parseSignerPublicKey(publicText) };
}

const CALL = {
  chainId: 31_337,
  nonce: 7,
  to: `0x${'ab'.repeat(20)}`,
  data: '0x12345678',
  gas: 90_000,
  maxFeePerGas: 30n,
  maxPriorityFeePerGas: 2n,
};
const production = { projectId: 'p', environmentId: 'p-production' };

const signerKeys = makeSignerKeys();
let created: SignableKeyRecord;
const createStore = () => {
  const [view, log] = [createMemoryRecords(SIGNABLE_KEYS), createMemoryRecordLog<SignableKeyRecord>()];
  return { log, store: createRecordStore({ view, log }, { changedBy: 'ada', requestId: 'r-1' }) };
};
// Created once, because each key starts a process.
beforeAll(async () => {
  const { log, store } = createStore();
  created = await createSignableKey({ store, signerKey: signerKeys.signerKey }, { ...production, name: 'Minter' });
  expect(log.appended).toEqual([created]);
});

async function setUp() {
  const { log, store } = createStore();
  const record = (await store.change(() => created))!;
  const context = { store, signerKey: signerKeys.signerKey };
  return { log, context, store, record, ...signerKeys, signer: createSigner({ privateKeys: [signerKeys.key] }) };
}

/** Seals arbitrary bytes, as anyone with the public key can. */
function seal(bytes: Uint8Array, { kid, ...publicKey }: ReturnType<typeof parseSignerPublicKey>, claims: object) {
  const header = { alg: 'ECDH-ES', enc: 'A256GCM', kid, ...claims };
  return new CompactEncrypt(bytes).setProtectedHeader(header).encrypt(publicKey);
}

describe('a signable key', () => {
  it('consists of an address and a sealed private key that only the signer can decrypt', async () => {
    const { record, signerKey, key } = await setUp();
    expect(record).toMatchObject({ ...production, name: 'Minter', state: 'live', revision: 1, changedBy: 'ada' });
    expect(record.address).toMatch(/^0x[0-9a-f]{40}$/);
    const { environmentId } = production;
    expect(parseSealHeader(record.sealed)).toEqual({ kid: signerKey.kid, environmentId, address: record.address });
    const { plaintext } = await compactDecrypt(record.sealed, key.privateKey);
    expect(privateKeyToAddress(toHex(plaintext)).toLowerCase()).toBe(record.address);
    await expect(compactDecrypt(record.sealed, makeSignerKeys().key.privateKey)).rejects.toThrow();
    expect(JSON.stringify(toShownSignableKey(record))).not.toContain(record.sealed);
  });

  it('signs messages from which its address can be recovered', async () => {
    const { record, signer } = await setUp();
    const message = 'Playline: äöü 0x00';
    const signature = (await signer.signMessage(record, message)) as `0x${string}`;
    expect((await recoverMessageAddress({ message, signature })).toLowerCase()).toBe(record.address);
  });

  it('signs transactions deterministically, and its address, the call and the hash can be recovered', async () => {
    const { record, signer } = await setUp();
    const { hash, bytes } = await signer.signTransaction(record, CALL);
    const serializedTransaction = toHex(bytes) as TransactionSerializedEIP1559;
    expect((await recoverTransactionAddress({ serializedTransaction })).toLowerCase()).toBe(record.address);
    const { gas, ...call } = CALL;
    expect(parseTransaction(serializedTransaction)).toMatchObject({ ...call, gas: BigInt(gas), type: 'eip1559' });
    expect(toHex(hash)).toBe(keccak256(bytes));
    expect(await signer.signTransaction(record, CALL)).toEqual({ hash, bytes });
  });

  it('cannot sign a new transaction while disabled, but can complete a started transaction', async () => {
    const { context, record, signer } = await setUp();
    const disabled = await disableSignableKey(context, { ...production, key: 'Minter' });
    await expect(signer.signTransaction(disabled, CALL)).rejects.toThrow(UnusableKey);
    const completed = await signer.signTransaction(disabled, CALL, { isOpen: true });
    expect(completed).toEqual(await signer.signTransaction(record, CALL));
  });

  it('has a unique name within its environment', async () => {
    const { context } = await setUp();
    const duplicate = createSignableKey(context, { ...production, name: ' Minter' });
    await expect(duplicate).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
    const other = { projectId: 'p', environmentId: 'p-development', name: 'Minter' };
    expect(await createSignableKey(context, other)).toMatchObject(other);
    for (const name of ['', ' ', 'a'.repeat(201)])
      await expect(createSignableKey(context, { ...production, name })).rejects.toMatchObject(INVALID);
  });

  it('cannot sign messages while disabled, and is found by name or address only in its environment', async () => {
    const { context, record, signer } = await setUp();
    const disabled = await disableSignableKey(context, { ...production, key: 'Minter' });
    await expect(signer.signMessage(disabled, 'm')).rejects.toThrow(UnusableKey);
    const named = { ...production, key: record.address.toUpperCase().replace('0X', '0x') };
    await expect(disableSignableKey(context, named)).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
    expect(await enableSignableKey(context, named)).toMatchObject({ state: 'live', revision: 3 });
    for (const change of [{ projectId: 'q' }, { environmentId: 'p-development' }])
      for (const key of [record.address, 'Minter'])
        await expect(disableSignableKey(context, { ...production, ...change, key })).rejects.toMatchObject(NOT_FOUND);
  });

  it('is not created if sealing fails or ten keys are being created, and errors contain no secrets', async () => {
    const invalid = { ...makeSignerKeys().signerKey, x: 'AAAA' };
    const attempts = Array.from({ length: 12 }, () => makeSealedPair({ signerKey: invalid, environmentId: 'e' }));
    const faults = (await Promise.allSettled(attempts)).map((each) => each.status === 'rejected' && each.reason);
    for (const fault of faults.slice(0, 10)) expect(fault.message).toMatch(/^no key pair was created: \w+$/);
    for (const fault of faults.slice(10))
      expect(fault).toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR', retryAfterS: 3 });
  });
});

describe('a signer', () => {
  it('rejects a key that was moved to another environment or address in the log', async () => {
    const { record, signer } = await setUp();
    const refusal = (change: Partial<SignableKeyRecord>) => signer.signMessage({ ...record, ...change }, 'm');
    await expect(refusal({ environmentId: 'p-development' })).rejects.toThrow('another environment');
    await expect(refusal({ address: `0x${'1'.repeat(40)}` })).rejects.toThrow('another address');
    const [header = '', ...rest] = record.sealed.split('.');
    const moved = { ...JSON.parse(Buffer.from(header, 'base64url').toString()), environmentId: 'p-development' };
    const sealed = [Buffer.from(JSON.stringify(moved)).toString('base64url'), ...rest].join('.');
    await expect(refusal({ environmentId: 'p-development', sealed })).rejects.toThrow('not the private key');
  });

  it("rejects another address's private key and invalid bytes", async () => {
    const { record, signer, signerKey } = await setUp();
    const claims = { environmentId: record.environmentId, address: record.address };
    const otherKey = Buffer.from(generatePrivateKey().slice(2), 'hex');
    for (const bytes of [otherKey, Buffer.alloc(32), Buffer.alloc(0), Buffer.alloc(33, 1)]) {
      const sealed = await seal(bytes, signerKey, claims);
      const refused = await signer.signMessage({ ...record, sealed }, 'm').catch((fault) => fault);
      expect(refused).toBeInstanceOf(UnusableKey);
      expect(`${refused.message} ${refused.cause}`).not.toContain(otherKey.toString('hex'));
    }
  });

  it('rejects a sealed key with an unknown format or algorithm, or for another signer', async () => {
    const { record, signer, signerKey } = await setUp();
    const claims = { environmentId: record.environmentId, address: record.address };
    const otherSignerKey = makeSignerKeys().signerKey;
    const texts = [
      ...['', 'a.b.c.d.e', record.sealed.slice(0, -1), `${record.sealed}.e`],
      await seal(Buffer.alloc(32, 1), signerKey, { ...claims, enc: 'A128GCM' }),
      await seal(Buffer.alloc(32, 1), signerKey, { ...claims, cty: 'x' }),
      await seal(Buffer.alloc(32, 1), otherSignerKey, claims),
    ];
    for (const sealed of texts)
      await expect(signer.signMessage({ ...record, sealed }, 'm')).rejects.toThrow(UnusableKey);
  });

  it('decrypts keys sealed for an older signer key and reseals them for the newest signer key', async () => {
    const { record, key, store } = await setUp();
    const newest = makeSignerKeys();
    const rotatedSigner = createSigner({ privateKeys: [newest.key, key] });
    expect(rotatedSigner.sealingKey).toEqual(newest.signerKey);
    expect(await rotatedSigner.signMessage(record, 'm')).toMatch(/^0x[0-9a-f]{130}$/);
    expect(await resealSignableKey({ store, signer: rotatedSigner }, record)).toEqual({ kind: 'resealed' });
    const [resealed] = await store.readAll();
    expect(resealed).toMatchObject({ revision: 2, address: record.address });
    const newestOnly = createSigner({ privateKeys: [newest.key] });
    expect(await newestOnly.signMessage(resealed!, 'm')).toBe(await rotatedSigner.signMessage(record, 'm'));
    await expect(newestOnly.signMessage(record, 'm')).rejects.toThrow('does not have');
    expect(await resealSignableKey({ store, signer: rotatedSigner }, resealed!)).toEqual({ kind: 'newest' });
    // The record has changed since it was read.
    expect(await resealSignableKey({ store, signer: rotatedSigner }, record)).toEqual({ kind: 'changed' });
    expect(await resealSignableKey({ store, signer: newestOnly }, record)).toMatchObject({ kind: 'refused' });
  });
});

describe('signer settings', () => {
  it('can be JSON or base64url', () => {
    const { jwk, publicText, signerKey } = makeSignerKeys();
    expect(parseSignerPublicKey(Buffer.from(publicText).toString('base64url'))).toEqual(signerKey);
    const [key] = parseSignerKeys(Buffer.from(JSON.stringify([jwk])).toString('base64url'));
    expect(key?.publicKey).toEqual(signerKey);
  });

  it('are rejected if they are invalid, and errors do not quote them', () => {
    const { jwk } = makeSignerKeys();
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' });
    const secp = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey.export({ format: 'jwk' });
    for (const invalid of [jwk, rsa, secp, { ...jwk, d: undefined, x: 'AAAA' }, [], 'x', null])
      expect(() => parseSignerPublicKey(JSON.stringify(invalid))).toThrow(/^(?!.*"?d"?:).*$/);
    expect(() => parseSignerPublicKey(JSON.stringify(jwk))).toThrow('private key');
    for (const invalid of [[], [secp], jwk, [{ ...jwk, d: undefined }], [null]]) {
      const parse = () => parseSignerKeys(JSON.stringify(invalid));
      expect(parse).toThrow(/^(?!.*[A-Za-z0-9_-]{20}).*$/);
    }
  });
});

describe('role grant calls', () => {
  it('match the calls that viem encodes', () => {
    const [contract, address] = [`0x${'ab'.repeat(20)}`, `0x${'12'.repeat(20)}`];
    const abi = parseAbi(['function grantRole(bytes32 role, address account)']);
    const expected = (['SIGNER_ROLE', 'MINTER_ROLE'] as const).map((role) => {
      const hash = keccak256(toHex(role));
      expect(CONTRACT_ROLES[role]).toBe(hash);
      return encodeFunctionData({ abi, functionName: 'grantRole', args: [hash, address as `0x${string}`] });
    });
    const calls = grantCallsOf({ contract, address });
    expect(calls.map(({ data }) => data)).toEqual(expected);
    expect(calls.map(({ role, to }) => [role, to])).toEqual([
      ['SIGNER_ROLE', contract],
      ['MINTER_ROLE', contract],
    ]);
    expect(() => grantCallsOf({ contract: 'x', address })).toThrow();
  });
});

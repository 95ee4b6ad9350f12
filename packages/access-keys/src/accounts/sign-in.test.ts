import { beforeAll, describe, expect, it } from 'vitest';
import { createPasskeys } from '../passkeys/index.ts';
import { disableAccount } from './invitations.ts';
import { createPasswords, type Passwords } from './passwords.ts';
import { addPasskey, createSignIn, recordPasskeyUse, setPassword } from './sign-in.ts';
import { createSoftwareAuthenticator } from './test/software-authenticator.ts';
import { createWorld } from './test/world.ts';

const TOO_MANY_REQUESTS = { code: 'TOO_MANY_REQUESTS_ERROR' };
const UNAUTHORISED = { code: 'UNAUTHORISED_REQUEST' };
const origin = 'http://localhost:8090';
const site = { origin, rpId: 'localhost' };
const from = {
  userAgent: 'Firefox',
  address: '10.0.0.7',
  previousText: null,
  browserOf: (_accountId: string): string | null => null,
};
const PASSWORD = 'correct horse battery';
const MINUTE = 60_000;
const passwords = createPasswords({ productName: 'Playline' });
let realHash: string;
beforeAll(async () => {
  realHash = await passwords.hash({ password: PASSWORD, login: 'ada' });
});

/** A fake hasher that records each verification and hashes a password `p` to `hash of p`. */
function createCountingPasswords() {
  const seen: (string | null)[] = [];
  const fake: Passwords = {
    hash: async ({ password }) => `hash of ${password}`,
    verify: async (hash, password) => {
      seen.push(hash);
      return hash === `hash of ${password}`;
    },
  };
  return { ...fake, seen };
}

async function setUp(hashing: Passwords = createCountingPasswords(), readAccounts?: () => Promise<never>) {
  const world = createWorld();
  const ada = await world.addMember('ada', 'developer');
  const passwordHash = hashing === passwords ? realHash : `hash of ${PASSWORD}`;
  await setPassword(world.operator, { accountId: ada.id, passwordHash });
  const signIn = createSignIn({
    accounts: readAccounts ?? (async () => world.latest()),
    sessions: world.sessions,
    oneTimeTokens: world.oneTimeTokens,
    passwords: hashing,
    passkeys: createPasskeys({ name: 'Playline', origin }),
    recordUse: (use) => recordPasskeyUse(world, use),
    wallClockMs: () => world.clock.at,
  });
  const byPassword = (login: string, password = PASSWORD, changes: Partial<typeof from> = {}) =>
    signIn.byPassword({ ...from, ...changes, login, password });
  const addDevice = async (state: Partial<ReturnType<typeof createSoftwareAuthenticator>['state']> = {}) => {
    const device = createSoftwareAuthenticator(site);
    Object.assign(device.state, state);
    const options = await signIn.passkeyCreation(ada);
    const created = await signIn.readPasskey({ response: device.create(options as never), name: 'Phone' });
    expect(created.ownerId).toBe(ada.id);
    await addPasskey(world.operator, { accountId: ada.id, passkey: created.passkey });
    return device;
  };
  const requestPasskey = async () => (await signIn.passkeyRequest(from)) as { challenge: string };
  const byPasskey = (response: unknown) => signIn.byPasskey({ ...from, response });
  return { ...world, ada, signIn, byPassword, byPasskey, addDevice, requestPasskey };
}

const failure = (work: Promise<unknown>) =>
  work.then(
    () => null,
    ({ code, message, status, details }) => ({ code, message, status, details }),
  );

describe('signing in with a password', () => {
  it('keeps at most fifty sessions per account and ends the oldest', async () => {
    const { ada, byPassword, sessions, clock } = await setUp();
    const texts: string[] = [];
    for (let at = 0; at < 53; at++) {
      clock.at += MINUTE;
      texts.push((await byPassword('ada')).text);
    }
    expect(await sessions.list(ada.id)).toHaveLength(50);
    expect(await Promise.all([2, 3].map((at) => sessions.find(texts[at]!)))).toMatchObject([
      null,
      { accountId: ada.id },
    ]);
  });

  it("starts a new session and ends the browser's previous session, which an attacker may have planted", async () => {
    const { byPassword, sessions, ada } = await setUp();
    const planted = await sessions.create({ accountId: 'mallory', userAgent: '', address: '' });
    const first = await byPassword('ADA ', PASSWORD, { previousText: planted.text } as never);
    expect(first).toMatchObject({ account: { id: ada.id }, session: { accountId: ada.id, userAgent: 'Firefox' } });
    expect(first.text).not.toBe(planted.text);
    expect(await sessions.find(planted.text)).toBeNull();
    const second = await byPassword('ada', PASSWORD, { previousText: first.text } as never);
    expect(second.text).not.toBe(first.text);
    expect(await sessions.find(first.text)).toBeNull();
    expect(await sessions.find(second.text)).toMatchObject({ accountId: ada.id });
  });

  it('fails with the same message and the same number of hashes for every login', async () => {
    const hashes = createCountingPasswords();
    const { byPassword, addMember, operator } = await setUp(hashes);
    const disabled = await addMember('disabled', 'analyst');
    await setPassword(operator, { accountId: disabled.id, passwordHash: `hash of ${PASSWORD}` });
    await disableAccount(operator, disabled.id);
    const failures = [
      await failure(byPassword('ada', 'another password')),
      await failure(byPassword('unknown')),
      await failure(byPassword('disabled')),
      await failure(byPassword('disabled', 'another password')),
      await failure(byPassword('')),
      await failure(byPassword('x'.repeat(10_000))),
    ];
    expect(failures[0]).toMatchObject(UNAUTHORISED);
    for (const each of failures) expect(each).toEqual(failures[0]);
    expect(hashes.seen).toHaveLength(failures.length);
  });

  it('takes equally long for an unknown login, a wrong password and a disabled account', async () => {
    const { byPassword, addMember, operator, oneTimeTokens } = await setUp(passwords);
    const disabled = await addMember('disabled', 'analyst');
    await setPassword(operator, { accountId: disabled.id, passwordHash: realHash });
    await disableAccount(operator, disabled.id);
    const logins = ['ada', 'unknown', 'disabled'];
    const minimumMs = new Map(logins.map((login) => [login, Number.POSITIVE_INFINITY]));
    // Compare the minimum CPU time over several rounds, because wall-clock time is unreliable on a busy machine.
    for (let round = 0; round < 8; round++)
      for (const login of logins) {
        const startUsage = process.cpuUsage();
        await failure(byPassword(login, 'another password', { address: `10.0.1.${round}` }));
        const { user, system } = process.cpuUsage(startUsage);
        minimumMs.set(login, Math.min(minimumMs.get(login)!, (user + system) / 1000));
        await oneTimeTokens.resetAttempts(`login ${login}`);
      }
    expect(Math.min(...minimumMs.values())).toBeGreaterThan(5);
    expect(Math.max(...minimumMs.values()) / Math.min(...minimumMs.values())).toBeLessThan(2);
  });

  it('is limited to 10 attempts per login and network in 15 minutes, even for concurrent requests', async () => {
    for (const login of ['ada', 'unknown']) {
      const hashes = createCountingPasswords();
      const { byPassword, clock } = await setUp(hashes);
      const attempts = Array.from({ length: 30 }, () => failure(byPassword(login, 'another password')));
      const codes = (await Promise.all(attempts)).map((each) => each?.code);
      expect(codes.filter((code) => code === 'UNAUTHORISED_REQUEST')).toHaveLength(10);
      expect(codes.filter((code) => code === 'TOO_MANY_REQUESTS_ERROR')).toHaveLength(20);
      expect(hashes.seen).toHaveLength(10);
      expect(await failure(byPassword(login))).toMatchObject(TOO_MANY_REQUESTS);
      clock.at += 15 * MINUTE;
      expect((await failure(byPassword(login, 'x')))?.code).toBe('UNAUTHORISED_REQUEST');
    }
  });

  it('is blocked by attempts from other networks only after 200 attempts', async () => {
    const { byPassword } = await setUp();
    const guess = (address: string) => failure(byPassword('ada', 'a guess', { address }));
    for (let round = 0; round < 24; round++) await guess(`10.1.0.${round % 2}`);
    expect(await failure(byPassword('ada', PASSWORD, { address: '10.9.0.1' }))).toBeNull();
    for (let at = 0; at < 199; at++) await guess(`10.2.0.${at}`);
    expect(await failure(byPassword('ada', PASSWORD, { address: '10.9.0.2' }))).toBeNull();
    for (let at = 0; at < 200; at++) await guess(`10.3.0.${at}`);
    expect(await failure(byPassword('ada', PASSWORD, { address: '10.9.0.3' }))).toMatchObject(TOO_MANY_REQUESTS);
  });

  it('has a separate attempt limit for each known browser', async () => {
    const { byPassword, ada } = await setUp();
    const knownBrowser = { browserOf: (accountId: string) => (accountId === ada.id ? 'browser-1' : null) };
    for (let round = 0; round < 60; round++) await failure(byPassword('ada', 'a guess'));
    expect(await failure(byPassword('ada'))).toMatchObject(TOO_MANY_REQUESTS);
    expect(await failure(byPassword('ada', PASSWORD, knownBrowser))).toBeNull();
    for (let round = 0; round < 10; round++)
      expect((await failure(byPassword('ada', 'a guess', knownBrowser)))?.code).toBe('UNAUTHORISED_REQUEST');
    expect(await failure(byPassword('ada', PASSWORD, knownBrowser))).toMatchObject(TOO_MANY_REQUESTS);
  });

  it("resets the login's attempt count after a successful sign-in", async () => {
    const { byPassword } = await setUp();
    for (let round = 0; round < 3; round++) {
      for (let at = 0; at < 9; at++) await failure(byPassword('ada', 'another password'));
      await byPassword('ada');
    }
  });

  it.each([
    ['an address', (_: number) => '10.0.0.7', '10.0.0.8'],
    ['an IPv6 network', (at: number) => `2001:db8:1:2::${(at + 1).toString(16)}`, '2001:db8:1:3::1'],
  ])('is limited to 50 attempts from %s in 15 minutes across all logins', async (_what, addressOf, another) => {
    const { byPassword } = await setUp();
    for (let at = 0; at < 50; at++)
      expect(await failure(byPassword(`login-${at}`, 'x', { address: addressOf(at) }))).toMatchObject(UNAUTHORISED);
    expect(await failure(byPassword('ada', PASSWORD, { address: addressOf(50) }))).toMatchObject(TOO_MANY_REQUESTS);
    expect(await failure(byPassword('ada', PASSWORD, { address: another }))).toBeNull();
  });

  it('fails if the account is disabled or the password changes during hashing', async () => {
    for (const change of ['disable', 'password'] as const) {
      const hashes = createCountingPasswords();
      const { signIn, ada, operator, sessions } = await setUp({
        ...hashes,
        verify: async (hash, password) => {
          if (change === 'disable') await disableAccount(operator, ada.id);
          else await setPassword(operator, { accountId: ada.id, passwordHash: 'hash of another' });
          return hashes.verify(hash, password);
        },
      });
      expect(await failure(signIn.byPassword({ ...from, login: 'ada', password: PASSWORD }))).not.toBeNull();
      expect(await sessions.list(ada.id)).toEqual([]);
    }
  });

  it('fails while the accounts cannot be read', async () => {
    const unknown = () => Promise.reject(new Error('the view is not complete'));
    const { byPassword } = await setUp(createCountingPasswords(), unknown);
    await expect(byPassword('ada')).rejects.toThrow('not complete');
  });
});

describe('signing in with a passkey', () => {
  it('requires a registered passkey but no login', async () => {
    const { addDevice, byPasskey, requestPasskey, ada } = await setUp();
    const device = await addDevice();
    const options = await requestPasskey();
    expect(options).toMatchObject({ rpId: 'localhost', userVerification: 'preferred' });
    expect(options).not.toHaveProperty('allowCredentials.0');
    expect(await byPasskey(device.get(options))).toMatchObject({ account: { id: ada.id } });
    const unknownDevice = createSoftwareAuthenticator(site);
    expect(await failure(byPasskey(unknownDevice.get(await requestPasskey())))).toMatchObject(UNAUTHORISED);
  });

  it('is limited to 100 challenges per address in 15 minutes', async () => {
    const { requestPasskey, signIn } = await setUp();
    for (let at = 0; at < 100; at++) await requestPasskey();
    expect(await failure(requestPasskey())).toMatchObject(TOO_MANY_REQUESTS);
    expect(await failure(signIn.passkeyRequest({ address: '10.0.0.8' }))).toBeNull();
  });

  it('accepts each challenge once, within 5 minutes and only for its purpose', async () => {
    const { addDevice, byPasskey, requestPasskey, signIn, ada, clock } = await setUp();
    const device = await addDevice();
    const response = device.get(await requestPasskey());
    const results = await Promise.all([1, 2].map(() => failure(byPasskey(response))));
    expect(results.filter((each) => each === null)).toHaveLength(1);
    const expired = device.get(await requestPasskey());
    clock.at += 5 * MINUTE;
    const fromCreation = device.get((await signIn.passkeyCreation(ada)) as never);
    const invented = device.get({ challenge: Buffer.alloc(32).toString('base64url') });
    for (const wrong of [response, expired, fromCreation, invented])
      expect(await failure(byPasskey(wrong))).toMatchObject(UNAUTHORISED);
  });

  it('fails for another site, another key or a malformed response', async () => {
    const { addDevice, byPasskey, requestPasskey } = await setUp();
    const device = await addDevice();
    const valid = device.get(await requestPasskey());
    const elsewhere = createSoftwareAuthenticator({ origin: 'http://evil.example', rpId: 'localhost' });
    const invalidResponses = [
      { ...elsewhere.get(await requestPasskey()), id: device.id, rawId: device.id },
      { ...createSoftwareAuthenticator(site).get(await requestPasskey()), id: device.id, rawId: device.id },
      { ...valid, response: { ...valid.response, signature: 'AAAA' } },
      ...[null, 'x', {}, { id: 1 }, { id: device.id, response: { clientDataJSON: 'e30' } }],
    ];
    for (const wrong of invalidResponses) expect(await failure(byPasskey(wrong))).toMatchObject(UNAUTHORISED);
  });

  it("stores the device's counter and rejects a lower counter", async () => {
    const { addDevice, byPasskey, requestPasskey, find, ada } = await setUp();
    const device = await addDevice({ counter: 7 });
    device.state.counter = 9;
    await byPasskey(device.get(await requestPasskey()));
    expect(find(ada.id).passkeys).toMatchObject([{ counter: 9 }]);
    device.state.counter = 8;
    expect(await failure(byPasskey(device.get(await requestPasskey())))).not.toBeNull();
  });

  it('fails with the same message for a disabled account as for an unknown passkey', async () => {
    const { addDevice, byPasskey, requestPasskey, operator, ada } = await setUp();
    const device = await addDevice();
    const unknown = await failure(byPasskey(createSoftwareAuthenticator(site).get(await requestPasskey())));
    await disableAccount(operator, ada.id);
    expect(await failure(byPasskey(device.get(await requestPasskey())))).toEqual(unknown);
  });
});

describe('registering a passkey', () => {
  it('succeeds once, within 5 minutes, for the requested account and site', async () => {
    const { signIn, ada, clock } = await setUp();
    const requestPasskey = async () => (await signIn.passkeyCreation(ada)) as { challenge: string };
    const read = (response: unknown) => signIn.readPasskey({ response, name: 'Phone' });
    const device = createSoftwareAuthenticator(site);
    const response = device.create(await requestPasskey());
    expect(await read(response)).toMatchObject({
      ownerId: ada.id,
      passkey: { id: device.id, name: 'Phone', counter: 0 },
    });
    const elsewhere = createSoftwareAuthenticator({ origin: 'http://evil.example', rpId: 'localhost' });
    const expired = device.create(await requestPasskey());
    clock.at += 5 * MINUTE;
    const fromSignIn = device.create((await signIn.passkeyRequest(from)) as never);
    for (const wrong of [response, expired, fromSignIn, elsewhere.create(await requestPasskey()), null])
      expect(await failure(read(wrong))).toMatchObject({ code: 'VALIDATION_ERROR' });
  });
});

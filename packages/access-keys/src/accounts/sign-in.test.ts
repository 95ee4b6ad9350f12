import { beforeAll, describe, expect, it } from 'vitest';
import { createPasskeys } from '../passkeys/index.ts';
import { disableAccount } from './invitations.ts';
import { createPasswords, type Passwords } from './passwords.ts';
import { addPasskey, createSignIn, notePasskeyUse, setPassword } from './sign-in.ts';
import { createSoftwareAuthenticator } from './test/software-authenticator.ts';
import { createWorld } from './test/world.ts';

const origin = 'http://localhost:8090';
const place = { origin, rpId: 'localhost' };
const from = {
  userAgent: 'Firefox',
  address: '10.0.0.7',
  previousText: null,
  browserOf: (_accountId: string): string | null => null,
};
const PASSWORD = 'correct horse battery';
const MINUTE = 60_000;
const passwords = createPasswords({ productName: 'Playline' });
let kept: string;
beforeAll(async () => {
  kept = await passwords.hash({ password: PASSWORD, login: 'ada' });
});

/** Counts hashes instead of making them; the password is the one that was kept when the text is `hash of` it. */
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

async function setUp(given: Passwords = createCountingPasswords()) {
  const world = createWorld();
  const ada = await world.addMember('ada', 'developer');
  const passwordHash = given === passwords ? kept : `hash of ${PASSWORD}`;
  await setPassword(world.operator, { accountId: ada.id, passwordHash });
  const signIn = createSignIn({
    accounts: async () => world.standing(),
    sessions: world.sessions,
    oneTimeTexts: world.oneTimeTexts,
    passwords: given,
    passkeys: createPasskeys({ name: 'Playline', origin }),
    noteUse: (use) => notePasskeyUse(world, use),
    wallClockMs: () => world.clock.at,
  });
  const byPassword = (login: string, password = PASSWORD, also: Partial<typeof from> = {}) =>
    signIn.byPassword({ ...from, ...also, login, password });
  const addDevice = async (state: Partial<ReturnType<typeof createSoftwareAuthenticator>['state']> = {}) => {
    const device = createSoftwareAuthenticator(place);
    Object.assign(device.state, state);
    const asked = await signIn.passkeyCreation(ada);
    const made = await signIn.readPasskey({ response: device.create(asked as never), name: 'Phone' });
    expect(made.ownerId).toBe(ada.id);
    await addPasskey(world.operator, { accountId: ada.id, passkey: made.passkey });
    return device;
  };
  const ask = async () => (await signIn.passkeyRequest(from)) as { challenge: string };
  const byPasskey = (response: unknown) => signIn.byPasskey({ ...from, response });
  return { ...world, ada, signIn, byPassword, byPasskey, addDevice, ask };
}

const failure = (work: Promise<unknown>) =>
  work.then(
    () => null,
    ({ code, message, status, details }) => ({ code, message, status, details }),
  );

describe('signing in with a password', () => {
  it('leaves an account fifty sessions, the oldest of which end: all of them are read at once', async () => {
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

  it('makes a session of its own each time, and ends the one that the browser had: nobody can put one there before', async () => {
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

  it('is refused in the same words, after the same work, whoever it is', async () => {
    const hashes = createCountingPasswords();
    const { byPassword, addMember, operator } = await setUp(hashes);
    const gone = await addMember('gone', 'analyst');
    await setPassword(operator, { accountId: gone.id, passwordHash: `hash of ${PASSWORD}` });
    await disableAccount(operator, gone.id);
    const failures = [
      await failure(byPassword('ada', 'another password')),
      await failure(byPassword('nobody')),
      await failure(byPassword('gone')),
      await failure(byPassword('gone', 'another password')),
      await failure(byPassword('')),
      await failure(byPassword('x'.repeat(10_000))),
    ];
    expect(failures[0]).toMatchObject({ code: 'UNAUTHORISED_REQUEST' });
    for (const each of failures) expect(each).toEqual(failures[0]);
    expect(hashes.seen).toHaveLength(failures.length);
  });

  it('takes as long for a login that nobody has, a wrong password and a disabled account', async () => {
    const { byPassword, addMember, operator, oneTimeTexts } = await setUp(passwords);
    const gone = await addMember('gone', 'analyst');
    await setPassword(operator, { accountId: gone.id, passwordHash: kept });
    await disableAccount(operator, gone.id);
    const logins = ['ada', 'nobody', 'gone'];
    const least = new Map(logins.map((login) => [login, Number.POSITIVE_INFINITY]));
    // Time of the processor, one after the other, and the least of each: a busy machine makes the clock say anything.
    for (let round = 0; round < 8; round++)
      for (const login of logins) {
        const begun = process.cpuUsage();
        await failure(byPassword(login, 'another password', { address: `10.0.1.${round}` }));
        const { user, system } = process.cpuUsage(begun);
        least.set(login, Math.min(least.get(login)!, (user + system) / 1000));
        await oneTimeTexts.forgetAttempts(`login ${login}`);
      }
    expect(Math.min(...least.values())).toBeGreaterThan(5);
    expect(Math.max(...least.values()) / Math.min(...least.values())).toBeLessThan(2);
  });

  it('is tried 10 times for a login from one network in 15 minutes, right or unknown, also when all tries come at once', async () => {
    for (const login of ['ada', 'nobody']) {
      const hashes = createCountingPasswords();
      const { byPassword, clock } = await setUp(hashes);
      const tries = Array.from({ length: 30 }, () => failure(byPassword(login, 'another password')));
      const codes = (await Promise.all(tries)).map((each) => each?.code);
      expect(codes.filter((code) => code === 'UNAUTHORISED_REQUEST')).toHaveLength(10);
      expect(codes.filter((code) => code === 'TOO_MANY_REQUESTS_ERROR')).toHaveLength(20);
      expect(hashes.seen).toHaveLength(10);
      expect(await failure(byPassword(login))).toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR' });
      clock.at += 15 * MINUTE;
      expect((await failure(byPassword(login, 'x')))?.code).toBe('UNAUTHORISED_REQUEST');
    }
  });

  it('is not closed to its owner by tries from other networks, and by at most 200 of them everywhere', async () => {
    const { byPassword } = await setUp();
    const guess = (address: string) => failure(byPassword('ada', 'a guess', { address }));
    for (let round = 0; round < 24; round++) await guess(`10.1.0.${round % 2}`);
    expect(await failure(byPassword('ada', PASSWORD, { address: '10.9.0.1' }))).toBeNull();
    for (let at = 0; at < 199; at++) await guess(`10.2.0.${at}`);
    expect(await failure(byPassword('ada', PASSWORD, { address: '10.9.0.2' }))).toBeNull();
    for (let at = 0; at < 200; at++) await guess(`10.3.0.${at}`);
    expect(await failure(byPassword('ada', PASSWORD, { address: '10.9.0.3' }))).toMatchObject({
      code: 'TOO_MANY_REQUESTS_ERROR',
    });
  });

  it('lets a known browser of the account in whatever others have tried, and counts its own tries', async () => {
    const { byPassword, ada } = await setUp();
    const known = { browserOf: (accountId: string) => (accountId === ada.id ? 'browser-1' : null) };
    for (let round = 0; round < 60; round++) await failure(byPassword('ada', 'a guess'));
    expect(await failure(byPassword('ada'))).toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR' });
    expect(await failure(byPassword('ada', PASSWORD, known))).toBeNull();
    for (let round = 0; round < 10; round++)
      expect((await failure(byPassword('ada', 'a guess', known)))?.code).toBe('UNAUTHORISED_REQUEST');
    expect(await failure(byPassword('ada', PASSWORD, known))).toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR' });
  });

  it('forgets the tries for a login after the right one', async () => {
    const { byPassword } = await setUp();
    for (let round = 0; round < 3; round++) {
      for (let at = 0; at < 9; at++) await failure(byPassword('ada', 'another password'));
      await byPassword('ada');
    }
  });

  it.each([
    ['an address', (_: number) => '10.0.0.7', '10.0.0.8'],
    ['a network of IPv6', (at: number) => `2001:db8:1:2::${(at + 1).toString(16)}`, '2001:db8:1:3::1'],
  ])('is tried 50 times from %s in 15 minutes, whatever the logins', async (_what, addressOf, another) => {
    const { byPassword } = await setUp();
    for (let at = 0; at < 50; at++)
      expect(await failure(byPassword(`login-${at}`, 'x', { address: addressOf(at) }))).toMatchObject({
        code: 'UNAUTHORISED_REQUEST',
      });
    expect(await failure(byPassword('ada', PASSWORD, { address: addressOf(50) }))).toMatchObject({
      code: 'TOO_MANY_REQUESTS_ERROR',
    });
    expect(await failure(byPassword('ada', PASSWORD, { address: another }))).toBeNull();
  });

  it('does not count for an account that was disabled, or has got another password, while the hash was made', async () => {
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

  it('is refused to everybody while nobody can say which accounts there are', async () => {
    const { sessions, oneTimeTexts, store } = createWorld();
    const signIn = createSignIn({
      accounts: () => Promise.reject(new Error('the view is not complete')),
      sessions,
      oneTimeTexts,
      passwords: createCountingPasswords(),
      passkeys: createPasskeys({ name: 'Playline', origin }),
      noteUse: (use) => notePasskeyUse({ store }, use),
    });
    await expect(signIn.byPassword({ ...from, login: 'ada', password: PASSWORD })).rejects.toThrow('not complete');
  });
});

describe('signing in with a passkey', () => {
  it('asks for no login, and needs a passkey that was made for an account', async () => {
    const { addDevice, byPasskey, ask, ada } = await setUp();
    const device = await addDevice();
    const asked = await ask();
    expect(asked).toMatchObject({ rpId: 'localhost', userVerification: 'preferred' });
    expect(asked).not.toHaveProperty('allowCredentials.0');
    expect(await byPasskey(device.get(asked))).toMatchObject({ account: { id: ada.id } });
    const stranger = createSoftwareAuthenticator(place);
    expect(await failure(byPasskey(stranger.get(await ask())))).toMatchObject({ code: 'UNAUTHORISED_REQUEST' });
  });

  it('is asked for 100 times from an address in 15 minutes: what was asked is kept for a while', async () => {
    const { ask, signIn } = await setUp();
    for (let at = 0; at < 100; at++) await ask();
    expect(await failure(ask())).toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR' });
    expect(await failure(signIn.passkeyRequest({ address: '10.0.0.8' }))).toBeNull();
  });

  it('takes each challenge once, within 5 minutes, and none that was for something else or never given out', async () => {
    const { addDevice, byPasskey, ask, signIn, ada, clock } = await setUp();
    const device = await addDevice();
    const response = device.get(await ask());
    const both = await Promise.all([1, 2].map(() => failure(byPasskey(response))));
    expect(both.filter((each) => each === null)).toHaveLength(1);
    const late = device.get(await ask());
    clock.at += 5 * MINUTE;
    const ofCreation = device.get((await signIn.passkeyCreation(ada)) as never);
    const invented = device.get({ challenge: Buffer.alloc(32).toString('base64url') });
    for (const wrong of [response, late, ofCreation, invented])
      expect(await failure(byPasskey(wrong))).toMatchObject({ code: 'UNAUTHORISED_REQUEST' });
  });

  it('is refused from another site, with another key, or when what was sent is nothing of the kind', async () => {
    const { addDevice, byPasskey, ask } = await setUp();
    const device = await addDevice();
    const right = device.get(await ask());
    const elsewhere = createSoftwareAuthenticator({ origin: 'http://evil.example', rpId: 'localhost' });
    const wrongs = [
      { ...elsewhere.get(await ask()), id: device.id, rawId: device.id },
      { ...createSoftwareAuthenticator(place).get(await ask()), id: device.id, rawId: device.id },
      { ...right, response: { ...right.response, signature: 'AAAA' } },
      ...[null, 'x', {}, { id: 1 }, { id: device.id, response: { clientDataJSON: 'e30' } }],
    ];
    for (const wrong of wrongs) expect(await failure(byPasskey(wrong))).toMatchObject({ code: 'UNAUTHORISED_REQUEST' });
  });

  it('notes what the device counts, and refuses a copy that counts less', async () => {
    const { addDevice, byPasskey, ask, find, ada } = await setUp();
    const device = await addDevice({ counter: 7 });
    device.state.counter = 9;
    await byPasskey(device.get(await ask()));
    expect(find(ada.id).passkeys).toMatchObject([{ counter: 9 }]);
    device.state.counter = 8;
    expect(await failure(byPasskey(device.get(await ask())))).not.toBeNull();
  });

  it('is refused for a disabled account in the words for a passkey that nobody has', async () => {
    const { addDevice, byPasskey, ask, operator, ada } = await setUp();
    const device = await addDevice();
    const unknown = await failure(byPasskey(createSoftwareAuthenticator(place).get(await ask())));
    await disableAccount(operator, ada.id);
    expect(await failure(byPasskey(device.get(await ask())))).toEqual(unknown);
  });
});

describe('a passkey that is made', () => {
  it('is of the account that it was asked for, once, within 5 minutes, and of this site', async () => {
    const { signIn, ada, clock } = await setUp();
    const ask = async () => (await signIn.passkeyCreation(ada)) as { challenge: string };
    const read = (response: unknown) => signIn.readPasskey({ response, name: 'Phone' });
    const device = createSoftwareAuthenticator(place);
    const response = device.create(await ask());
    expect(await read(response)).toMatchObject({
      ownerId: ada.id,
      passkey: { id: device.id, name: 'Phone', counter: 0 },
    });
    const elsewhere = createSoftwareAuthenticator({ origin: 'http://evil.example', rpId: 'localhost' });
    const late = device.create(await ask());
    clock.at += 5 * MINUTE;
    const ofSignIn = device.create((await signIn.passkeyRequest(from)) as never);
    for (const wrong of [response, late, ofSignIn, elsewhere.create(await ask()), null])
      expect(await failure(read(wrong))).toMatchObject({ code: 'VALIDATION_ERROR' });
  });
});

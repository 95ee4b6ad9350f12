import { argon2Sync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createPasswords } from './passwords.ts';

const passwords = createPasswords({ productName: 'Playline' });
const hash = (password: string, login = 'ada@example.com') => passwords.hash({ password, login });
const PASSWORD = 'correct horse battery';

describe('a password', () => {
  it('is stored as an argon2id hash with 19 MiB and two passes', async () => {
    const stored = await hash(PASSWORD);
    expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    const [, , , , salt = '', tag] = stored.split('$');
    const costs = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 };
    const derived = argon2Sync('argon2id', { message: PASSWORD, nonce: Buffer.from(salt, 'base64'), ...costs });
    expect(derived.toString('base64').replace(/=+$/, '')).toBe(tag);
    expect(await hash(PASSWORD)).not.toBe(stored);
  });

  it('is accepted in any Unicode normalisation form, but must otherwise match exactly', async () => {
    const stored = await hash('Ångström 12345');
    expect(await passwords.verify(stored, 'Ångström 12345'.normalize('NFD'))).toBe(true);
    for (const wrong of ['ångström 12345', 'Ångström 1234', '', 'a'.repeat(100_000)])
      expect(await passwords.verify(stored, wrong)).toBe(false);
  });

  it('is accepted if another program created the hash', async () => {
    const stored = '$argon2id$v=19$m=19456,t=2,p=1$A8MepiHpqEr6vIFmGJ7Oxw$uwtTYI6DvNgeh/6I5IH83W+rtGSAQxuXZDd8bUakLqk';
    expect(await passwords.verify(stored, 'hunter2hunter2')).toBe(true);
  });

  it('must have 12 to 256 characters', async () => {
    await expect(hash('a'.repeat(11))).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    await expect(hash('😀'.repeat(257))).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    for (const valid of ['😀'.repeat(256), 'abcdefghijkl', '!"#%&/()=?+-'])
      expect(await passwords.verify(await hash(valid), valid)).toBe(true);
  });

  it.each([
    'ada@example.com',
    'ADA-example-com!',
    'playline-2026',
    'PlaylinePlayline',
    'ada@example.com1234',
    '１２PLAYLINE３４ ',
  ])('must contain more than the login or the product name: %s', async (password) => {
    await expect(hash(password)).rejects.toThrow('more than the login');
  });

  it.each([
    'nonsense',
    '$argon2id$v=19$m=9999999,t=2,p=1$A8MepiHpqEr6vIFmGJ7Oxw$uwtTYI6DvNgeh/6I5IH83W+rtGSAQxuXZDd8bUakLqk',
    '$argon2id$v=19$m=19456,t=0,p=1$A8MepiHpqEr6vIFmGJ7Oxw$uwtTYI6DvNgeh/6I5IH83W+rtGSAQxuXZDd8bUakLqk',
  ])('is rejected at no extra cost if the hash has an unknown format or excessive parameters: %s', async (stored) => {
    expect(await passwords.verify(stored, 'hunter2hunter2')).toBe(false);
  });

  it('is hashed by at most two concurrent calls, while 32 calls can wait and further calls are rejected', async () => {
    const stored = await hash(PASSWORD);
    const results = await Promise.allSettled(Array.from({ length: 40 }, () => passwords.verify(stored, PASSWORD)));
    const refused = results.filter((each) => each.status === 'rejected').map(({ reason }) => reason);
    expect(refused).toHaveLength(6);
    for (const reason of refused) expect(reason).toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR', retryAfterS: 2 });
    expect(await passwords.verify(stored, PASSWORD)).toBe(true);
  });
});

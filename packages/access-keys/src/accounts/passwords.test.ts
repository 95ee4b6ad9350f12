import { argon2Sync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createPasswords } from './passwords.ts';

const passwords = createPasswords({ productName: 'Playline' });
const hash = (password: string, login = 'ada@example.com') => passwords.hash({ password, login });
const GOOD = 'correct horse battery';

describe('a password', () => {
  it('is stored as argon2id of 19 MiB and two passes', async () => {
    const kept = await hash(GOOD);
    expect(kept).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    const [, , , , salt = '', tag] = kept.split('$');
    const costs = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 };
    const made = argon2Sync('argon2id', { message: GOOD, nonce: Buffer.from(salt, 'base64'), ...costs });
    expect(made.toString('base64').replace(/=+$/, '')).toBe(tag);
    expect(await hash(GOOD)).not.toBe(kept);
  });

  it('is verified in any Unicode form, and nothing else is', async () => {
    const kept = await hash('Ångström 12345');
    expect(await passwords.verify(kept, 'Ångström 12345'.normalize('NFD'))).toBe(true);
    for (const wrong of ['ångström 12345', 'Ångström 1234', '', 'a'.repeat(100_000)])
      expect(await passwords.verify(kept, wrong)).toBe(false);
  });

  it('is verified when another program has hashed it', async () => {
    const kept = '$argon2id$v=19$m=19456,t=2,p=1$A8MepiHpqEr6vIFmGJ7Oxw$uwtTYI6DvNgeh/6I5IH83W+rtGSAQxuXZDd8bUakLqk';
    expect(await passwords.verify(kept, 'hunter2hunter2')).toBe(true);
  });

  it('has 12 to 256 characters', async () => {
    await expect(hash('a'.repeat(11))).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    await expect(hash('😀'.repeat(257))).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    for (const right of ['😀'.repeat(256), 'abcdefghijkl', '!"#%&/()=?+-'])
      expect(await passwords.verify(await hash(right), right)).toBe(true);
  });

  it.each([
    'ada@example.com',
    'ADA-example-com!',
    'playline-2026',
    'PlaylinePlayline',
    'ada@example.com1234',
    '１２PLAYLINE３４ ',
  ])('is not the login or the name of the product: %s', async (password) => {
    await expect(hash(password)).rejects.toThrow('more than the login');
  });

  it.each([
    'nonsense',
    '$argon2id$v=19$m=9999999,t=2,p=1$A8MepiHpqEr6vIFmGJ7Oxw$uwtTYI6DvNgeh/6I5IH83W+rtGSAQxuXZDd8bUakLqk',
    '$argon2id$v=19$m=19456,t=0,p=1$A8MepiHpqEr6vIFmGJ7Oxw$uwtTYI6DvNgeh/6I5IH83W+rtGSAQxuXZDd8bUakLqk',
  ])('is never right for another stored format or too high costs, without more work: %s', async (kept) => {
    expect(await passwords.verify(kept, 'hunter2hunter2')).toBe(false);
  });

  it('is hashed two at a time with 32 waiting, and further callers are refused', async () => {
    const kept = await hash(GOOD);
    const all = await Promise.allSettled(Array.from({ length: 40 }, () => passwords.verify(kept, GOOD)));
    const refused = all.filter((each) => each.status === 'rejected').map(({ reason }) => reason);
    expect(refused).toHaveLength(6);
    for (const reason of refused) expect(reason).toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR', retryAfterS: 2 });
    expect(await passwords.verify(kept, GOOD)).toBe(true);
  });
});

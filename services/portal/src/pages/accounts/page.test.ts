import { expect, it } from 'vitest';
import { usePortal } from '../../test/open-portal.ts';
import { addPerson } from '../../test/people.ts';

const PATH = '/instance/accounts';
const portal = usePortal();

const findAccount = async (id: string) => (await portal.parts.accounts.all()).find((account) => account.id === id)!;

it('changing an account on the accounts page ends all sessions of the account', async () => {
  const { id } = await addPerson(portal, 'ada', {});
  const browser = await portal.signIn();
  const { text: sessionToken } = await portal.parts.sessions.create({ accountId: id, userAgent: '', address: '' });
  const submit = (action: string, values = {}) => browser.submit(PATH, action, { account: id, ...values });
  await submit('promote');
  expect(await findAccount(id)).toMatchObject({ isAdministrator: true });
  expect(await portal.parts.sessions.find(sessionToken)).toBeNull();
  await submit('demote');
  await submit('disable');
  expect(await findAccount(id)).toMatchObject({ isAdministrator: false, state: 'disabled' });
  await submit('enable');
  expect((await submit('remove', { confirm: 'another' })).status).toBe(400);
  await submit('remove', { confirm: 'ada' });
  expect(await findAccount(id)).toMatchObject({ state: 'disabled', login: '', name: '', passwordHash: null });
});

it('the accounts page shows an invitation link only once', async () => {
  const browser = await portal.signIn();
  const { text } = await browser.submit(PATH, 'invite', { name: 'Root' });
  expect(text).toMatch(/\/invitation\?code=[\w-]{43}/);
  const page = (await browser.get(PATH)).text;
  expect(page).toContain('invited, expires');
  expect(page).not.toMatch(/code=[\w-]{43}/);
  await browser.submit(PATH, 'revoke');
  expect((await portal.parts.accounts.all()).filter(({ state }) => state === 'invited')).toEqual([]);
});

it('the accounts page does not show password hashes', async () => {
  const ada = await addPerson(portal, 'hashed', {});
  expect((await (await portal.signIn()).get(PATH)).text).not.toContain(ada.passwordHash!.slice(-20));
});

import { expect, it } from 'vitest';
import { usePortal } from '../../test/open-portal.ts';

const portal = usePortal();

it('an owner sets the time zone and the safe properties of a project, and an analyst can only read them', async () => {
  const project = await portal.addProject('Analysed');
  const path = `/projects/${project.id}/analyst-settings`;
  const [owner, analyst] = [
    await portal.signIn({ project, role: 'owner' }),
    await portal.signIn({ project, role: 'analyst' }),
  ];
  await owner.submit(path, 'save', { 'time-zone': 'Europe/Berlin', 'safe-properties': 'mode\r\n level \n\n' });
  const stored = (await portal.parts.projects.all()).find(({ id }) => id === project.id);
  expect(stored).toMatchObject({ timeZone: 'Europe/Berlin', safeProperties: ['level', 'mode'] });
  const { text } = await analyst.get(path);
  expect(text).toContain('<dd>Europe/Berlin</dd>');
  expect(analyst.formOf(text, 'save')).toBeNull();
});

it('the analyst settings page explains an unknown time zone and keeps the entered properties', async () => {
  const project = await portal.addProject('Mistaken');
  const owner = await portal.signIn({ project, role: 'owner' });
  const wrong = { 'time-zone': 'Europe/Bielefeld', 'safe-properties': 'level' };
  const refused = await owner.submit(`/projects/${project.id}/analyst-settings`, 'save', wrong);
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('Europe/Bielefeld is unknown')]);
  expect(refused.text).toContain('\nlevel</textarea>');
});

import { SERVICES } from '@playline/infra/local';
import { VERSION } from '@playline/runtime';
import { expect, it } from 'vitest';
import { readChangelog, readOrder, readVersion } from './pages.ts';

const HEADINGS = ['Clients', 'Analysts', 'Operators', 'Required steps', 'Cannot be rolled back'];

it('the newest entry of the changelog has the version of package.json, which every process reports', () => {
  expect([readChangelog()[0]?.version, VERSION]).toEqual([readVersion(), readVersion()]);
});

it('every entry of the changelog has a version with a date or "unreleased", and all headings in order', () => {
  for (const { version, headings } of readChangelog()) {
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(headings, version).toEqual(HEADINGS);
  }
});

it('the upgrade page lists every service once', () => {
  expect(readOrder().toSorted()).toEqual(SERVICES.map(({ name }) => name).toSorted());
});

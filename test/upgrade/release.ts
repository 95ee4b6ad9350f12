import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readVersion } from './pages.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Folders that belong to a release. The rest of the repository contains tests and documents. */
const FOLDERS = ['packages', 'services', 'infra'];

export const ADDED = { name: 'addedLater', value: 'later' } as const;

export interface Release {
  readonly name: 'this' | 'next';
  readonly version: string;
  readonly folder: string;
}

export const THIS_RELEASE: Release = { name: 'this', version: readVersion(), folder: ROOT };

// Creates the next release: a copy of the sources whose schemas have one more field with a default, which the copied
// services set. It is the first field, so that decoding with the wrong schema fails. In the message schema it is the
// last field, because the message encoder writes fields in a fixed order.
export function createNextRelease(): Release & { remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'playline-next-release-'));
  for (const part of FOLDERS)
    cpSync(join(ROOT, part), join(folder, part), {
      recursive: true,
      filter: (path) => !path.includes('node_modules') && !path.includes('.playline'),
    });
  linkModules(folder);
  const schemas = join(folder, 'packages/contracts/schemas');
  for (const file of readdirSync(schemas)) addField(join(schemas, file), file === 'audience-message.avsc');
  const replaceIn = (path: string, original: string, changed: string) =>
    replaceOnce(join(folder, path), original, changed);
  replaceIn(
    'packages/contracts/src/records.ts',
    'encode: (record) => type.toBuffer(record),',
    `encode: (record) => type.toBuffer({ ...record, ${ADDED.name}: '${ADDED.value}' }),`,
  );
  const [major, minor] = THIS_RELEASE.version.split('.').map(Number);
  const version = `${major}.${minor! + 1}.0`;
  replaceIn('packages/runtime/package.json', `"version": "${THIS_RELEASE.version}"`, `"version": "${version}"`);
  const avroText = JSON.stringify([2 * ADDED.value.length, ...Buffer.from(ADDED.value)]);
  replaceIn(
    'services/gateway/src/routes/messages/handler.ts',
    'function toOutgoing(batch: BatchData, context: OutgoingContext): OutgoingRecord[] {',
    `function toOutgoing(read: BatchData, context: OutgoingContext): OutgoingRecord[] {
      const batch = { ...read, records: read.records.map((record) => (
        { ...record, value: Buffer.concat([record.value, Buffer.from(${avroText})]) })) };`,
  );
  const column = "added_later String COMMENT 'Added by the next release'";
  replaceIn(
    'infra/clickhouse/schema/02-events.sql',
    '    INDEX carried_keys',
    `    ${column},\n    INDEX carried_keys`,
  );
  writeFileSync(
    join(folder, 'infra/clickhouse/migrations/9999-added-later.sql'),
    `ALTER TABLE events ADD COLUMN IF NOT EXISTS ${column};\n`,
  );
  return { name: 'next', version, folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function linkModules(folder: string): void {
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '@playline'), { recursive: true });
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    if (name !== '@playline') symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  for (const part of ['packages', 'services'])
    for (const name of readdirSync(join(folder, part))) {
      symlinkSync(join(folder, part, name), join(modules, '@playline', name));
      const partModules = join(ROOT, part, name, 'node_modules');
      if (existsSync(partModules)) symlinkSync(partModules, join(folder, part, name, 'node_modules'));
    }
  symlinkSync(join(folder, 'infra'), join(modules, '@playline', 'infra'));
}

function addField(path: string, isLast: boolean): void {
  const schema = JSON.parse(readFileSync(path, 'utf8')) as { fields: object[] };
  const field = { name: ADDED.name, type: 'string', default: '' };
  schema.fields = isLast ? [...schema.fields, field] : [field, ...schema.fields];
  writeFileSync(path, JSON.stringify(schema, null, 2));
}

/** @throws Error unless `original` occurs exactly once: the next release would otherwise equal this release */
function replaceOnce(path: string, original: string, changed: string): void {
  const text = readFileSync(path, 'utf8');
  if (text.split(original).length !== 2) throw new Error(`${path} must contain this text exactly once: ${original}`);
  writeFileSync(path, text.split(original).join(changed));
}

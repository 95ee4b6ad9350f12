import type { Breach, Rule } from './tree.ts';

const TOP_LEVEL = new Set([
  'services',
  'packages',
  'infra',
  'test',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'biome.json',
  'vitest.config.ts',
  'docker-compose.yml',
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
]);

/** The top level of the repository has only the expected files and folders. */
export const checkTopLevel: Rule = ({ tree }) => {
  const tops = new Set([...tree.keys()].map((path) => path.split('/')[0] ?? ''));
  const strangers = [...tops].filter((top) => !TOP_LEVEL.has(top) && !top.startsWith('.'));
  return strangers.map((top) => ({
    rule: 'top level',
    path: top,
    found: 'does not belong at the top of the repository',
    mend: `put it below services, packages, infra or test; the top holds ${[...TOP_LEVEL].join(', ')} and dot files`,
  }));
};

/** The five things that every service has, each with the names that satisfy it. */
const FIVE_THINGS: { any: string[]; why: string }[] = [
  { any: ['README.md'], why: 'says what it reads, what it writes and how it fails' },
  { any: ['src/main.ts'], why: 'is the only file that names adapters and reads the environment' },
  { any: ['src/config.ts'], why: 'holds one zod schema of every setting' },
  { any: ['src/app.ts', 'src/pipeline.ts', 'src/commands/'], why: 'shows the whole flow on one screen' },
  {
    any: ['src/routes/', 'src/pages/', 'src/steps/', 'src/commands/'],
    why: 'has one folder a route or page, one file a step or command',
  },
];

/** All services have the same layout. */
export const checkServices: Rule = ({ tree }) => {
  const paths = [...tree.keys()];
  const services = new Set(paths.flatMap((path) => /^services\/[^/]+(?=\/)/.exec(path) ?? []));
  return [...services].flatMap((service) =>
    FIVE_THINGS.filter(({ any }) => !any.some((name) => paths.some((path) => isAt(path, `${service}/${name}`)))).map(
      ({ any, why }) => ({
        rule: 'services',
        path: service,
        found: `has no ${any.join(' or ')}`,
        mend: `add ${any.join(' or ')}: it ${why}`,
      }),
    ),
  );
};

function isAt(path: string, place: string): boolean {
  return place.endsWith('/') ? path.startsWith(place) : path === place;
}

/**
 * A package's name equals its folder's name, and every workspace is private, so that nothing is published by accident.
 */
export const checkManifests: Rule = ({ tree }) =>
  [...tree].flatMap(([path, text]) => {
    const folder = /^(?:services|packages)\/([^/]+)\/package\.json$/.exec(path)?.[1];
    if (folder === undefined) return [];
    const { name, private: hidden } = JSON.parse(text) as { name?: string; private?: boolean };
    const breach = (found: string, mend: string): Breach => ({ rule: 'manifests', path, found, mend });
    return [
      ...(name === `@playline/${folder}`
        ? []
        : [breach(`is named ${name}`, `call it @playline/${folder}, as its folder`)]),
      ...(hidden === true ? [] : [breach('could be published', 'set "private": true')]),
    ];
  });

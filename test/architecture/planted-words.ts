/**
 * One breach of each rule about forbidden text. The words are assembled here, so that this file does not contain them.
 */
export const WORD_LINES: { because: string; path: string; lines: string; rule: string }[] = [
  { because: 'text leaves work behind', path: 'README.md', lines: `TO${'DO'}: later`, rule: 'words' },
  { because: 'text names a page that is not here', path: 'README.md', lines: `deci${'ded'} points A`, rule: 'words' },
  {
    because: 'text names a row of a page that is not here',
    path: 'README.md',
    lines: `part ${'B, row'} 3`,
    rule: 'words',
  },
  {
    because: 'a comment names a page that is not here',
    path: 'services/gateway/src/app.ts',
    lines: `// See the design ${'page'} Identity.`,
    rule: 'words',
  },
  { because: 'text names a folder of one machine', path: 'README.md', lines: `run /ro${'ot'}/play`, rule: 'words' },
  {
    because: 'text names a registry host',
    path: 'README.md',
    lines: `https://registry.npm${'js.org'}/x`,
    rule: 'words',
  },
  {
    because: 'a type error is silenced',
    path: 'services/gateway/src/app.ts',
    lines: `// @ts-${'ignore'}`,
    rule: 'words',
  },
  {
    because: 'the lock file names a registry',
    path: 'package-lock.json',
    lines: '"resolved": "https://mirror.example/x.tgz"',
    rule: 'lock file',
  },
];

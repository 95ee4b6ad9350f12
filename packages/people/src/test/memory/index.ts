export { type MemoryPeople, openMemoryPeople } from './people.ts';

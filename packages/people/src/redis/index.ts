export { openRedisPeople, type RedisPeopleOptions } from './people.ts';

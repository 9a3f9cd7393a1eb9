import { addPeriods, periodOf, periodsBetween } from '../../lib/define/keys/calendar.ts';

/** A small company of invented people. Each first start creates the same people; dates, ages and counts depend on the day. */

const FIRST_NAMES = ['June', 'Amir', 'Beatriz', 'Chen', 'Dagny', 'Emeka', 'Farah', 'Goran'];
const LAST_NAMES = ['Jones', 'Okafor', 'Silva', 'Wang', 'Lindqvist', 'Jones', 'Haddad', 'Novak'];
const DEPARTMENTS = ['Sales', 'Marketing', 'Engineering', 'Finance'];
const TITLES = ['Manager', 'Senior Associate', 'Associate', 'Specialist', 'Analyst', 'Assistant'];
const STAFF_EACH = 6;
const FIRST_ID = 123;

const employees = DEPARTMENTS.flatMap((department, group) =>
  TITLES.slice(0, STAFF_EACH).map((title, index) => {
    const number = FIRST_ID + group * 100 + index;
    const firstName = FIRST_NAMES[(index + group * 3) % FIRST_NAMES.length] ?? '';
    const lastName = LAST_NAMES[(index + group * 5) % LAST_NAMES.length] ?? '';
    // The first employee is jonesj. The other addresses contain the number, because names repeat.
    const name = `${lastName}${firstName[0]}`.toLowerCase() + (number === FIRST_ID ? '' : number);
    return {
      department,
      employeeId: String(number).padStart(6, '0'),
      email: `${name}@contoso.com`,
      firstName,
      lastName,
      phone: `555-${String(number).padStart(4, '0')}`,
      jobTitle: `${department} ${title}`,
      hireDate: `${2010 + index}-0${1 + group}-15`,
      birthDate: `${1970 + index * 3}-1${group % 3}-0${1 + index}`,
      nationalId: `000-00-${String(number).padStart(4, '0')}`,
      vacationHours: 40 + index * 8,
    };
  }),
);

const departments = DEPARTMENTS.map((department) => ({
  department,
  name: `${department} department`,
  budgetCode: `${department.slice(0, 3).toUpperCase()}-2026`,
  description: `All of ${department}`,
  managerId: employees.find((employee) => employee.department === department)?.employeeId,
}));

const CATEGORIES = ['Travel', 'Meals', 'Hotel', 'Training'];
const DOORS = ['Main entrance', 'Garage', 'Archive'];
/** A drawing of 128 pixels square. */
const PHOTO =
  'iVBORw0KGgoAAAANSUhEUgAAAIAAAACAAgMAAAC+UIlYAAAADFBMVEXZ5PIvb5/wyajYrIghqXP8AAABGElEQVR42u3USw6CMBAGYErSDQtd9RKeokfogonX4Sguzay8gafwHp5ADIoi0pkfARNjOtt+mUehk2UpUqSYGzlzBc51sWnAHiTQUhR3sBMBtwEqyDWKB9hpM2hzMIMmEMg7UOk9Sl1CsOnAfhpgBmN8H+SvoEpgOviFr7nAPzn/XcCnN/914wUCVxBcYnAN4kUKVzFc5tmqAQcFrC/Mx7MG6rquExgBTkRbBRi6hRcBtSGduwco4+eWnhHUAlIR+woCSBBLYfrAyyNIgxDpNcw78HqFYQ0ivYYZAi/fUuyu3BCUoIV+EyYG/CfAxkDQe+x3CQGRPoaJAz8e2DgI44GLg3I8IAJzzgZGAn4xYCUQ/go4CTSf8wrqGJoe6VPb/QAAAABJRU5ErkJggg==';

interface SampleRequest {
  readonly method: 'POST' | 'PATCH' | 'PUT';
  readonly path: string;
  readonly body: object;
}

/** Ids are derived from the content, so an interrupted load creates nothing twice when it is repeated. */
export function sampleRequests(now: number): readonly SampleRequest[][] {
  const post = (path: string, list: readonly object[]) => list.map((body) => ({ method: 'POST', path, body }) as const);
  return [
    post(
      'employees',
      employees.map((employee) => ({ ...employee, age: ageAt(employee.birthDate, now) })),
    ),
    post('departments', departments),
    [...post('reviews', reviews()), ...post('logins', logins(now)), ...post('expenses', expenses(now))],
    [...post('doorevents', doorEvents(now)), ...doorMinutes(now), ...messages(now), ...post('people', people())],
    ['Sales/000123', 'Marketing/000224'].map((employee) => {
      const body = new Uint8Array(Buffer.from(PHOTO, 'base64'));
      return { method: 'PUT', path: `employees/${employee}/photo`, body } as const;
    }),
  ];
}

/** The first four employees on each of the last four days. */
const some = employees.slice(0, 4).flatMap((employee) => [0, 1, 2, 3].map((day) => ({ employee, day })));

function id(kind: number, index: number): string {
  return `00000000-0000-4000-8000-${String(kind * 1000 + index).padStart(12, '0')}`;
}

/** The full years since a birth. */
function ageAt(birthDate: string, now: number): number {
  const today = periodOf('day', now);
  const years = Number(today.slice(0, 4)) - Number(birthDate.slice(0, 4));
  return today.slice(5) < birthDate.slice(5) ? years - 1 : years;
}

/** Nine o'clock in UTC, `day` days ago. */
function at(now: number, day: number): string {
  return `${addPeriods('day', periodOf('day', now), -day)}T09:00:00.000Z`;
}

function reviews() {
  return employees.slice(0, 4).flatMap(({ department, employeeId, firstName }, index) =>
    [2023, 2024, 2025].map((year) => ({
      department,
      employeeId,
      year,
      rating: 1 + ((index + year) % 5),
      comments: `${firstName} has done well in ${year}.`,
    })),
  );
}

function expenses(now: number) {
  return some.map(({ employee: { department, employeeId }, day }, index) => ({
    employeeId,
    department,
    at: at(now, day),
    claimId: id(1, index),
    amount: 12.5 * (index + 1),
    category: CATEGORIES[index % CATEGORIES.length],
  }));
}

function doorEvents(now: number) {
  return some.map(({ employee: { department, employeeId }, day }, index) => ({
    department,
    employeeId,
    hour: at(now, day).replace(/\D/g, '').slice(0, 10),
    eventId: id(2, index),
    door: DOORS[index % DOORS.length],
  }));
}

/** Yesterday's counts of the morning, the lunch break and the evening. */
function doorMinutes(now: number): SampleRequest[] {
  const [day = ''] = at(now, 1).split('T');
  const minutes = [8, 12, 17].flatMap((hour) => Array.from({ length: 60 }, (_, minute) => 60 * hour + minute));
  return ['Marketing', 'Engineering', 'Finance'].map((department, index) => {
    const counts = Object.fromEntries(minutes.map((minute) => [minute, (minute * (7 + index)) % 5]));
    return { method: 'PATCH', path: `doorminutes/${department}/${day}`, body: { counts } };
  });
}

function logins(now: number) {
  return employees.slice(0, 3).flatMap(({ employeeId }, index) =>
    [0, 1, 2].map((day) => ({
      employeeId,
      at: at(now, day),
      loginId: id(3, index * 3 + day),
      succeeded: day !== 1,
      address: `192.0.2.${index + 1}`,
    })),
  );
}

/** Counts of yesterday by the hour, and of the year so far by the day. */
function messages(now: number): SampleRequest[] {
  const [day = ''] = at(now, 1).split('T');
  const year = day.slice(0, 4);
  const daysSoFar = periodsBetween('day', `${year}-01-01`, day).length;
  const counts = (first: number, length: number, most: number) =>
    Object.fromEntries(Array.from({ length }, (_, index) => [first + index, (index * 7) % most]));
  return employees.slice(0, 2).flatMap(({ employeeId }) => [
    { method: 'PATCH', path: `messagehours/${employeeId}/${day}`, body: { counts: counts(0, 24, 12) } },
    { method: 'PATCH', path: `messageyears/${employeeId}/${year}`, body: { counts: counts(1, daysSoFar, 60) } },
  ]);
}

function people() {
  const staff = employees.slice(0, 3).map(({ employeeId, firstName, lastName, email, jobTitle }) => ({
    kind: 'employee',
    country: 'UK',
    personId: `e-${employeeId}`,
    firstName,
    lastName,
    email,
    jobTitle,
  }));
  const buyers = [
    { personId: 'c-HARBR', firstName: 'Ada', companyName: 'Harbour Teas' },
    { personId: 'c-LAMPS', firstName: 'Noor', companyName: 'Lamps and More' },
  ].map((buyer) => ({ kind: 'customer', country: 'UK', ...buyer }));
  return [...staff, ...buyers];
}

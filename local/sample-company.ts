/** A small company of made-up people, the same at every first start. */

const FIRST_NAMES = ['June', 'Amir', 'Beatriz', 'Chen', 'Dagny', 'Emeka', 'Farah', 'Goran'];
const LAST_NAMES = ['Jones', 'Okafor', 'Silva', 'Wang', 'Lindqvist', 'Jones', 'Haddad', 'Novak'];
const DEPARTMENTS = ['Sales', 'Marketing', 'Engineering', 'Finance'];
const TITLES = ['Manager', 'Senior Associate', 'Associate', 'Specialist', 'Analyst', 'Assistant'];
const STAFF_EACH = 6;
const FIRST_ID = 123;
const DAY_MS = 24 * 60 * 60 * 1_000;

export const sampleEmployees = DEPARTMENTS.flatMap((department, group) =>
  TITLES.slice(0, STAFF_EACH).map((title, index) => {
    const number = FIRST_ID + group * 100 + index;
    const firstName = FIRST_NAMES[(index + group * 3) % FIRST_NAMES.length] ?? '';
    const lastName = LAST_NAMES[(index + group * 5) % LAST_NAMES.length] ?? '';
    // The very first is plain jonesj; the others carry their number, as names repeat.
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
      age: 50 - index * 3,
    };
  }),
);

export const sampleDepartments = DEPARTMENTS.map((department) => ({
  department,
  description: `All of ${department}`,
  managerId: sampleEmployees.find((employee) => employee.department === department)?.employeeId,
}));

const CATEGORIES = ['Travel', 'Meals', 'Hotel', 'Training'];
const DOORS = ['Main entrance', 'Garage', 'Archive'];

/** Claims and passages of the last days; their ids are told from their content, so that a second load finds them. */
export function sampleEvents(now: number) {
  const some = sampleEmployees.slice(0, 4).flatMap((employee) => [0, 1, 2, 3].map((day) => ({ employee, day })));
  const id = (kind: number, index: number) =>
    `00000000-0000-4000-8000-${String(kind * 1000 + index).padStart(12, '0')}`;
  const at = (day: number) => new Date(Math.floor(now / DAY_MS - day) * DAY_MS + 9 * 60 * 60 * 1_000).toISOString();
  return {
    reviews: sampleEmployees
      .slice(0, 4)
      .flatMap(({ department, employeeId }, index) =>
        [2023, 2024, 2025].map((year) => ({ department, employeeId, year, rating: 1 + ((index + year) % 5) })),
      ),
    expenses: some.map(({ employee: { employeeId }, day }, index) => ({
      employeeId,
      at: at(day),
      claimId: id(1, index),
      amount: 12.5 * (index + 1),
      category: CATEGORIES[index % CATEGORIES.length],
    })),
    doorevents: some.map(({ employee: { department, employeeId }, day }, index) => ({
      department,
      employeeId,
      hour: at(day).replace(/\D/g, '').slice(0, 10),
      eventId: id(2, index),
      door: DOORS[index % DOORS.length],
    })),
  };
}

/** A few of the last days. */
export function sampleLogins(now: number) {
  return sampleEmployees.slice(0, 3).flatMap(({ employeeId }, index) =>
    [0, 1, 2].map((day) => ({
      employeeId,
      at: new Date(now - day * DAY_MS - index * 60_000).toISOString(),
      succeeded: day !== 1,
      address: `192.0.2.${index + 1}`,
    })),
  );
}
